// The protocol of the agent server, as far as a chat needs it: requests, server-sent events, and streams that go on after a break.

// Refused is an answer that says no, in the server's words.
export class Refused extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

// Lost says that the server could not be reached.
export class Lost extends Error {}

// request sends a request and returns the response, if it is a good one.
async function request(method, path, { body, headers = {}, signal } = {}) {
  const init = { method, headers: { ...headers }, signal, cache: "no-store" };
  if (body !== undefined) {
    init.headers["Content-Type"] = "application/json";
    init.body = JSON.stringify(body);
  }
  let response;
  try {
    response = await fetch(path, init);
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Lost("The server cannot be reached. Is it running?");
  }
  if (response.ok) return response;
  const said = await response.json().catch(() => ({}));
  const detail = typeof said.detail === "string" ? said.detail : `The server answered with status ${response.status}.`;
  throw new Refused(response.status, detail);
}

// ask sends a request and returns the JSON of the answer, if it has any.
export async function ask(method, path, body, signal) {
  const response = await request(method, path, { body, signal });
  const text = await response.text();
  return text ? JSON.parse(text) : null;
}

// events reads server-sent events, {event, data, id}, until signal is aborted. alive is called whenever something comes.
async function* events(body, alive, signal) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  signal.addEventListener("abort", () => reader.cancel().catch(() => {}), { once: true });
  let rest = "";
  let event = { event: "", data: "", id: "" };
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    alive();
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      const at = line.indexOf(":");
      if (line === "") {
        if (event.event) yield { ...event, data: event.data ? JSON.parse(event.data) : null };
        event = { event: "", data: "", id: "" };
      } else if (at > 0) {
        const name = line.slice(0, at);
        const text = line.slice(at + 1).replace(/^ /, "").replace(/\r$/, "");
        if (name === "data" && event.data) event.data += "\n" + text;
        else if (name in event) event[name] = text;
      }
    }
  }
}

// The server sends something at least every five seconds: after four times that the connection is taken for lost.
const silence = 20_000;

// Run is one run of a thread as a stream: each event once, in order, whatever happens to the connection or the server meanwhile.
export class Run {
  constructor(thread, id = "", after = "-1") {
    this.thread = thread;
    this.id = id;
    this.after = after; // the id of the last event that was seen
    this.stopped = new AbortController();
  }

  get path() {
    return `/threads/${this.thread}/runs/${this.id}`;
  }

  // begin asks for the run, and returns the response that streams it.
  async begin(body) {
    const response = await request("POST", `/threads/${this.thread}/runs/stream`, { body, signal: this.stopped.signal });
    this.id = response.headers.get("Content-Location").split("/").pop();
    return response;
  }

  // leave reads no further. The run goes on.
  leave() {
    this.stopped.abort();
  }

  // follow hands each event to on, and returns at the end of the run. away is told when the connection is lost, and when it is there again.
  async follow(on, away, { response } = {}) {
    for (let wait = 250; !this.stopped.signal.aborted; wait = Math.min(2 * wait, 5000)) {
      const dead = new AbortController();
      const signal = AbortSignal.any([dead.signal, this.stopped.signal]);
      let clock;
      const alive = () => {
        clearTimeout(clock);
        clock = setTimeout(() => dead.abort(), silence);
      };
      try {
        alive();
        response ??= await request("GET", `${this.path}/stream`, { headers: { "Last-Event-ID": this.after }, signal });
        away(false);
        for await (const event of events(response.body, alive, signal)) {
          if (this.stopped.signal.aborted) return;
          if (event.id) this.after = event.id;
          wait = 250;
          on(event);
        }
        clearTimeout(clock);
        if (!(await this.running())) return;
      } catch (error) {
        if (this.stopped.signal.aborted) return;
        if (error instanceof Refused && error.status < 500 && error.status !== 429) throw error;
        away(true);
      } finally {
        clearTimeout(clock);
      }
      response = null;
      await this.pause(wait);
    }
  }

  async running() {
    const run = await ask("GET", this.path, undefined, this.stopped.signal);
    return run.status === "pending" || run.status === "running";
  }

  pause(ms) {
    return new Promise((done) => {
      setTimeout(done, ms);
      this.stopped.signal.addEventListener("abort", done, { once: true });
    });
  }
}
