// Reads a LiteRT file with Netron's own reader and prints what its page would show: node netron.mjs folder-of-netron file
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [folder, file] = process.argv.slice(2);
const load = (name) => import(pathToFileURL(`${folder}/${name}.js`));
const [base, flatbuffers, tflite] = await Promise.all(["base", "flatbuffers", "tflite"].map(load));

// The part of Netron's context that its reader asks for.
const data = readFileSync(file);
const context = {
  identifier: file.split("/").pop(),
  stream: new base.BinaryStream(data),
  peek: async (type) => (type === "flatbuffers.binary" ? flatbuffers.BinaryReader.open(new base.BinaryStream(data)) : null),
  set(type, value) {
    this.type = type;
    this.value = value;
    return type;
  },
  require: (id) => load(id.replace("./", "")),
  metadata: async (name) => {
    const known = new Map(JSON.parse(readFileSync(`${folder}/${name}`, "utf-8")).map((one) => [one.name, one]));
    const attribute = (type, key) => known.get(type)?.attributes?.find((one) => one.name === key) ?? null;
    return { type: (name) => ({ ...(known.get(name) ?? { name }) }), attribute };
  },
};
const factory = new tflite.ModelFactory();
if (!(await factory.match(context))) throw new Error("Netron does not know this file");
const model = await factory.open(context);
const names = (ends) => ends.flatMap((end) => end.value.map((value) => [end.name, value.name, value.type?.toString() ?? "", value.initializer !== null]));
const graphs = model.modules.map((graph) => ({
  inputs: names(graph.inputs),
  outputs: names(graph.outputs),
  nodes: graph.nodes.map((node) => ({
    type: node.type.name,
    inputs: names(node.inputs),
    outputs: names(node.outputs),
    attributes: Object.fromEntries(node.attributes.map((one) => [one.name, String(one.value)])),
  })),
}));
console.log(JSON.stringify({ format: model.format, graphs }));
