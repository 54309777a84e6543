// Compiles and runs every model of a folder for some chips in a built playground: node playground.mjs SITE MODELS CHIP…
// Prints {"model chip": [digest of the file, digest of the outputs, cycles]}; a model with operators left on the CPU has no outputs.
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [site, models, ...chips] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(path.join(site, "pyodide", "pyodide.mjs")).href);
const python = await loadPyodide({ indexURL: path.join(site, "pyodide") + path.sep });
const read = (...parts) => new Uint8Array(fs.readFileSync(path.join(...parts)));
for (const name of ["numpy.zip", "openneutron.zip"]) {
  python.unpackArchive(read(site, "packages", name), "zip", { extractDir: "/lib/python3.14/site-packages" });
}
python.FS.mkdirTree("/models");
for (const name of fs.readdirSync(models)) python.FS.writeFile(`/models/${name}`, read(models, name));
python.globals.set("chips", python.toPy(chips));
const code = `
import hashlib, json, pathlib
import openneutron as on
from openneutron.run.given import random_inputs
from openneutron.run.runner import LiteRtRunner

found = {}
for path in sorted(pathlib.Path("/models").glob("*.tflite")):
    for chip in chips:
        program = on.compile(path.read_bytes(), target=chip, name=path.name)
        digests, cycles = [hashlib.sha256(program.tflite).hexdigest()], 0
        if all(operator.converted for operator in program.report.operators):
            runner = LiteRtRunner(program.tflite, source="program")
            result = runner.run(random_inputs(runner.inputs, seed=1))
            digests.append(hashlib.sha256(b"".join(value.tobytes() for value in result.outputs.values())).hexdigest())
            cycles = result.cycles
        found[f"{path.stem} {chip}"] = [*digests, cycles]
json.dumps(found)
`;
try {
  console.log(python.runPython(code));
} catch (error) {
  console.error(error.message); // its stack has a line of a megabyte
  process.exit(1);
}
