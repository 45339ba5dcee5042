// Forms that are made of JSON schemas: where one field has a few values, each of them is a button.
import { el } from "./view.js";

const label = (name, schema) => schema?.title ?? (name ? name[0].toUpperCase() + name.slice(1).replaceAll("_", " ") : "Answer");

// choices are the values of a schema that has few of them, null for others.
function choices(schema) {
  if (Array.isArray(schema?.enum)) return schema.enum;
  if (schema?.type === "boolean") return [true, false];
  return null;
}

const shown = (value) => {
  if (value === true) return "Yes";
  if (value === false) return "No";
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text ? text[0].toUpperCase() + text.slice(1) : "(empty)";
};

// field is an input for values of a schema: read returns the value, undefined for none; it throws when the text is none.
function field(name, schema, needed, first) {
  const title = label(name, schema) + (needed ? "" : " (if you like)");
  const few = choices(schema);
  let input;
  let read = () => input.value || undefined;
  if (schema?.type === "boolean") {
    input = el("input", { type: "checkbox" });
    read = () => input.checked;
  } else if (few) {
    input = el("select", {}, ...few.map((v, i) => el("option", { value: String(i) }, shown(v))));
    read = () => few[Number(input.value)];
  } else if (schema?.type === "integer" || schema?.type === "number") {
    input = el("input", { type: "number", step: schema.type === "integer" ? "1" : "any", min: schema.minimum, max: schema.maximum });
    read = () => (input.value === "" ? undefined : Number(input.value));
  } else if (schema?.type === "string") {
    input = el(needed && !(schema.maxLength <= 200) ? "textarea" : "input", { rows: "2", maxLength: schema.maxLength });
  } else {
    input = el("textarea", { rows: "3", spellcheck: false });
    if (first !== undefined) input.value = JSON.stringify(first, null, 2);
    read = () => {
      if (!input.value.trim()) return undefined;
      try {
        return JSON.parse(input.value);
      } catch {
        throw new Error(`${label(name, schema)}: that is no JSON.`);
      }
    };
  }
  const note = schema?.description ? el("small", {}, schema.description) : "";
  let node = el("label", { className: "field" }, el("span", {}, title), input, note);
  if (first !== undefined && !needed) node = el("details", {}, el("summary", {}, title), node);
  return { node, needed, read, title: label(name, schema) };
}

// parts are what a form for a schema consists of: fields, and the one whose values are its buttons.
function parts(schema, first) {
  if (schema?.type !== "object" || !schema.properties) {
    const buttons = choices(schema);
    return buttons ? { buttons, fields: [], whole: (_, v) => v } : { fields: [["", field("", schema, true)]], whole: (values) => values[""] };
  }
  const required = schema.required ?? [];
  const names = Object.keys(schema.properties);
  const few = names.filter((n) => choices(schema.properties[n]) && required.includes(n));
  const key = few.length === 1 ? few[0] : null;
  const fields = names.filter((n) => n !== key).map((n) => [n, field(n, schema.properties[n], required.includes(n), first?.[n])]);
  return {
    buttons: key ? choices(schema.properties[key]) : null,
    legend: key ? label(key, schema.properties[key]) : "",
    fields,
    whole: (values, chosen) => (key ? { ...values, [key]: chosen } : values),
  };
}

// form makes a form for a schema. send gets the value; first has values to begin with. A problem with a value shows in the form.
export function form(schema, { send, first, refused, off }) {
  const p = parts(schema, first);
  const problem = el("p", { className: "field", role: "alert" });
  const take = async (chosen) => {
    const values = {};
    try {
      problem.textContent = "";
      for (const [name, f] of p.fields) {
        const v = f.read();
        if (v === undefined && f.needed) throw new Error(`${f.title} is missing.`);
        if (v !== undefined) values[name] = v;
      }
      for (const b of whole.querySelectorAll("button")) b.disabled = true;
      await send(p.whole(values, chosen));
    } catch (error) {
      problem.textContent = error.message;
      refused?.(error);
      for (const b of whole.querySelectorAll("button")) b.disabled = false;
    }
  };
  const buttons = p.buttons
    ? p.buttons.map((v, i) => el("button", { type: "button", className: i === 0 ? "main" : "", disabled: off, onclick: () => take(v) }, shown(v)))
    : [el("button", { type: "submit", className: "main", disabled: off }, "Answer")];
  const whole = el("form", { onsubmit: (e) => { e.preventDefault(); if (!p.buttons) take(); } },
    ...p.fields.map(([, f]) => f.node), problem, el("div", { className: "row", role: "group", ariaLabel: p.legend }, ...buttons));
  return whole;
}
