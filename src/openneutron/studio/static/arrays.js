// Numpy's .npy and .npz, written here: inputs of a run travel as the files that the command line takes.

const KINDS = { float32: "<f4", int8: "|i1", uint8: "|u1", int16: "<i2", int32: "<i4" };

export function npy(values, shape, dtype = "float32") {
  const text = `{'descr': '${KINDS[dtype]}', 'fortran_order': False, 'shape': (${shape.join(", ")}${shape.length === 1 ? "," : ""}), }`;
  const padded = text.padEnd(Math.ceil((text.length + 11) / 64) * 64 - 11) + "\n";
  const head = new TextEncoder().encode(`\u0000NUMPY\u0001\u0000\u0000\u0000${padded}`);
  head[0] = 0x93;
  new DataView(head.buffer).setUint16(8, padded.length, true);
  const body = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
  const made = new Uint8Array(head.length + body.length);
  made.set(head);
  made.set(body, head.length);
  return made;
}

const TABLE = Uint32Array.from({ length: 256 }, (_, value) => {
  for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  return value >>> 0;
});

function crc(data) {
  let value = 0xffffffff;
  for (const byte of data) value = TABLE[(value ^ byte) & 255] ^ (value >>> 8);
  return (value ^ 0xffffffff) >>> 0;
}

// A zip archive of stored members, one per array.
export function npz(arrays) {
  const parts = [], directory = [];
  let offset = 0, entries = 0;
  for (const [name, data] of Object.entries(arrays)) {
    const file = new TextEncoder().encode(`${name}.npy`);
    const fields = (signature, more) => {
      const view = new DataView(new ArrayBuffer(signature === 0x04034b50 ? 30 : 46));
      let at = 0;
      const put = (width, value) => { width === 4 ? view.setUint32(at, value, true) : view.setUint16(at, value, true); at += width; };
      put(4, signature);
      if (more) put(2, 20);
      put(2, 20); put(2, 0x800); put(2, 0); put(2, 0); put(2, 0x21);
      put(4, crc(data)); put(4, data.length); put(4, data.length); put(2, file.length); put(2, 0);
      if (more) { put(2, 0); put(2, 0); put(2, 0); put(4, 0); put(4, offset); }
      return new Uint8Array(view.buffer);
    };
    directory.push(fields(0x02014b50, true), file);
    const head = fields(0x04034b50, false);
    parts.push(head, file, data);
    offset += head.length + file.length + data.length;
    entries += 1;
  }
  const length = directory.reduce((sum, part) => sum + part.length, 0);
  const end = new DataView(new ArrayBuffer(22));
  end.setUint32(0, 0x06054b50, true);
  end.setUint16(8, entries, true);
  end.setUint16(10, entries, true);
  end.setUint32(12, length, true);
  end.setUint32(16, offset, true);
  return join([...parts, ...directory, new Uint8Array(end.buffer)]);
}

function join(parts) {
  const made = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) { made.set(part, at); at += part.length; }
  return made;
}

export function base64(bytes) {
  let text = "";
  for (let at = 0; at < bytes.length; at += 0x8000) text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(text);
}
