// What answers the page's calls. An engine has three methods:
//   call(method, parameters, {progress, signal}) → the result, or an EngineError
//   upload(file, model, {progress, signal})      → the model's description
//   download(variant, name)                      → a Blob
// Aborting `signal` ends the work.

export class EngineError extends Error {
  constructor(error) {
    super(error.text);
    this.hint = error.hint;
    this.bug = error.bug;
  }
}

// Engine 1: the Python that serves this page. Calls are answered with lines of JSON.
export class ServerEngine {
  async call(method, parameters, options = {}) {
    return this.lines("call", JSON.stringify({ method, params: parameters }), options);
  }

  async upload(file, model = "", options = {}) {
    return this.lines(`upload?${new URLSearchParams({ name: file.name, model })}`, file, options);
  }

  async download(variant, name) {
    const answer = await fetch(`file/${encodeURIComponent(variant)}/${encodeURIComponent(name)}`);
    if (!answer.ok) throw new EngineError({ text: await answer.text(), hint: "" });
    return answer.blob();
  }

  async lines(address, body, { progress = () => {}, signal } = {}) {
    let answer;
    try {
      answer = await fetch(address, { method: "POST", body, signal });
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new EngineError({ text: "the server of this page does not answer; start `openneutron studio` again", hint: "" });
    }
    if (!answer.ok) throw new EngineError({ text: (await answer.text()).trim(), hint: "" });
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      rest += value;
      const parts = rest.split("\n");
      rest = parts.pop();
      for (const part of parts) {
        const row = JSON.parse(part);
        if ("progress" in row) progress(row.progress);
        else if ("error" in row) throw new EngineError(row.error);
        else return row.result;
      }
    }
    throw new EngineError({ text: "the server of this page ended in the middle of the work", hint: "" });
  }
}

export async function openEngine() {
  const mark = document.querySelector('meta[name="openneutron-engine"]');
  if (mark?.content !== "pyodide") return new ServerEngine();
  const { PyodideEngine } = await import("./pyodide_engine.js");
  return new PyodideEngine();
}
