// Engine 2: Python in a worker of this page. The worker is thrown away where work is cancelled or Python dies; the next one
// finds models and compiles again in the browser's own storage.
import { EngineError } from "./engine.js";

const LOST = "Python ended in the middle of the work";

export class PyodideEngine {
  constructor() {
    this.waiting = new Map(); // number of a request → its promise and its progress
    this.number = 0;
    this.session = sessionStorage.getItem("session") ?? crypto.randomUUID();
    sessionStorage.setItem("session", this.session);
    this.start();
  }

  start() {
    this.worker = new Worker(new URL("./pyodide_worker.js", import.meta.url), { type: "module" });
    this.worker.addEventListener("message", ({ data }) => this.hear(data));
    this.worker.addEventListener("error", (event) => { event.preventDefault(); this.restart(event.message || LOST); });
    this.worker.postMessage({ start: this.session });
  }

  restart(why) {
    this.worker.terminate();
    const lost = [...this.waiting.values()];
    this.waiting.clear();
    for (const { reject } of lost) reject(new EngineError({ text: `${why}; models and compiles are kept`, hint: "" }));
    this.start();
  }

  hear({ number, progress, result, error, dead }) {
    if (dead) { this.restart(`${LOST} (${dead})`); return; }
    const asked = this.waiting.get(number);
    if (!asked) return;
    if (progress !== undefined) { asked.progress(progress); return; }
    this.waiting.delete(number);
    if (error) asked.reject(new EngineError(error));
    else asked.resolve(result);
  }

  ask(request, { progress = () => {}, signal } = {}, transfer = []) {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) { reject(signal.reason); return; }
      const number = ++this.number;
      this.waiting.set(number, { resolve, reject, progress });
      signal?.addEventListener("abort", () => { if (this.waiting.has(number)) this.restart("cancelled"); });
      this.worker.postMessage({ number, ...request }, transfer);
    });
  }

  call(method, parameters, options) {
    return this.ask({ method, parameters: JSON.stringify(parameters) }, options);
  }

  async upload(file, model = "", options = {}) {
    const data = await file.arrayBuffer();
    return this.ask({ upload: file.name, data, model }, options, [data]);
  }

  async download(variant, name) {
    return new Blob([await this.ask({ download: name, variant })]);
  }
}
