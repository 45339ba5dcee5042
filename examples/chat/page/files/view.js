// What the page shows. Text of others is only ever set as text.

// el makes an element with properties and children; strings become text.
export function el(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value !== undefined && value !== null) node[name] = value;
  }
  node.append(...children);
  return node;
}

export const $ = (id) => document.getElementById(id);

// textOf is the text of a message's content.
export function textOf(content) {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content.map((part) => (typeof part === "string" ? part : part.text ?? "")).join("");
}

// calls says which tools a message asks for.
const calls = (message) => (message.tool_calls ?? []).map((c) => `${c.name}  ${Object.values(c.args ?? {}).map(String).join(", ")}`);

// facts is the text of a tool's result: of an object its values by their names.
function facts(text) {
  try {
    const value = JSON.parse(text);
    if (value && typeof value === "object") return Object.entries(value).map(([name, v]) => `${name} ${typeof v === "string" ? v : JSON.stringify(v)}`).join(" · ");
  } catch {
    // it is no JSON
  }
  return text;
}

// bubble shows a message.
function bubble(message, { writing, edit }) {
  const text = textOf(message.content);
  if (message.type === "human") {
    const again = edit ? el("button", { type: "button", className: "plain", onclick: (e) => edit(message, e.target.closest(".person")) }, "Edit") : "";
    return el("article", { className: "person", ariaLabel: "You" }, el("p", { className: "words" }, text), again);
  }
  if (message.type === "tool") return el("div", { className: "tool" }, `→ ${facts(text)}`);
  return el("article", { className: writing ? "agent writing" : "agent", ariaLabel: "Agent" },
    text ? el("p", { className: "words" }, text) : "", ...calls(message).map((line) => el("div", { className: "tool" }, line)));
}

const rows = new Map(); // what is shown, by the ids of messages: {node, was}

// showMessages shows a conversation, or how to begin one where begin is given. What has not changed stays as it is, so that nothing that is selected or focused is lost.
export function showMessages(messages, { writing, edit, begin }) {
  const log = $("log");
  const low = atEnd();
  if (messages.length === 0) {
    rows.clear();
    log.replaceChildren(...(begin ? [greeting(begin)] : []));
    return;
  }
  const kept = new Set(messages.map((m) => m.id));
  for (const [id, row] of rows) {
    if (!kept.has(id)) {
      row.node.remove();
      rows.delete(id);
    }
  }
  for (const node of [...log.children]) if (![...rows.values()].some((r) => r.node === node)) node.remove();
  messages.forEach((m, i) => {
    const is = { writing: m.id === writing, edit };
    const was = JSON.stringify([m.type, m.content, m.tool_calls, is.writing, Boolean(edit)]);
    let row = rows.get(m.id);
    if (row?.was !== was) {
      const words = row?.node.querySelector(":scope > .words");
      if (words && m.type === "ai" && is.writing && !m.tool_calls?.length && row.node.classList.contains("writing")) {
        words.textContent = textOf(m.content); // the next word
        row.was = was;
      } else {
        const node = bubble(m, is);
        row?.node.replaceWith(node);
        row = { node, was };
        rows.set(m.id, row);
      }
    }
    if (log.children[i] !== row.node) log.insertBefore(row.node, log.children[i] ?? null);
  });
  if (low) toEnd();
}

// atEnd reports whether the end of the conversation is to be seen: then it stays so when there is more of it.
const atEnd = () => $("talk").scrollHeight - $("talk").scrollTop - $("talk").clientHeight < 80;

function toEnd() {
  $("talk").scrollTop = $("talk").scrollHeight;
}

let asked = []; // the cards that are shown

// showAsks shows the cards of what is asked. Those that are shown already stay, with what was typed into them.
export function showAsks(cards) {
  if (cards === asked) return;
  asked = cards;
  $("asks").replaceChildren(...cards);
  if (cards.length > 0) toEnd();
}

function greeting(begin) {
  const first = ["What can you do?", "Refund order o-11, please.", "Refund order o-1042, please."];
  return el("div", { className: "empty" }, el("h2", {}, "What is it about?"),
    el("p", {}, "This agent looks at orders and gives money back. Large refunds wait for an approval."),
    ...first.map((text) => el("button", { type: "button", onclick: () => begin(text) }, text)));
}

// editor lets the person change a message in its place.
export function editor(message, row, { send, leave }) {
  const words = el("textarea", { rows: "3", value: textOf(message.content), ariaLabel: "Your message" });
  row.replaceChildren(el("form", { onsubmit: (e) => { e.preventDefault(); if (words.value.trim()) send(words.value.trim()); } }, words,
    el("p", { className: "tool" }, "The conversation goes on from here. What was done meanwhile stays done."),
    el("div", { className: "row" }, el("button", { type: "submit", className: "main" }, "Send again"),
      el("button", { type: "button", onclick: leave }, "Leave it"))));
  words.focus();
}

// forget has the messages shown anew.
export function forget() {
  rows.clear();
  $("log").replaceChildren();
}

const states = { busy: "at work", interrupted: "waits", error: "failed" };

export function showThreads(threads, current) {
  $("threads").replaceChildren(...threads.map((t) => {
    const link = el("a", { href: `#${t.thread_id}` }, el("span", {}, String(t.metadata?.title ?? "Conversation")),
      el("small", {}, [new Date(t.created_at).toLocaleString([], { dateStyle: "short", timeStyle: "short" }), states[t.status]].filter(Boolean).join(" · ")));
    if (t.thread_id === current) link.ariaCurrent = "page";
    return el("li", {}, link);
  }));
}

export function showStatus(text) {
  if ($("status").textContent !== text) $("status").textContent = text;
}

// showProblem says what went wrong, with something to do about it: {name, act}.
export function showProblem(text, remedy) {
  $("problem").hidden = !text;
  $("problem").replaceChildren(el("span", {}, text ?? ""),
    ...(remedy ? [el("button", { type: "button", onclick: remedy.act }, remedy.name)] : []),
    el("button", { type: "button", onclick: () => showProblem("") }, "Close"));
}
