// Pictures and sound as arrays of a model's input.

// How pixels of 0 … 255 become what a model was trained on.
export const RANGES = {
  "0 to 1": (value) => value / 255,
  "−1 to 1": (value) => value / 127.5 - 1,
  "0 to 255": (value) => value,
  "ImageNet": (value, channel) => (value / 255 - [0.485, 0.456, 0.406][channel]) / [0.229, 0.224, 0.225][channel],
};

// The range whose ends are nearest to those of a quantized input.
export function likelyRange(input) {
  if (input.low === undefined) return "0 to 1";
  if (input.high > 64) return "0 to 255";
  if (input.low < -1.6) return "ImageNet";
  return input.low < -0.25 ? "−1 to 1" : "0 to 1";
}

// Height, width, channels, and whether channels come first; null for what is no picture.
export function pictureShape(shape) {
  const found = shape.length === 4 && shape[0] === 1 ? shape.slice(1) : shape.length === 3 ? shape : null;
  if (!found) return null;
  const fits = (channels) => channels === 1 || channels === 3;
  if (fits(found[2])) return { height: found[0], width: found[1], channels: found[2], first: false };
  if (fits(found[0])) return { height: found[1], width: found[2], channels: found[0], first: true };
  return null;
}

// Samples of a sound, if the input is one long row of them.
export function soundLength(shape) {
  const long = shape.filter((size) => size > 1);
  return long.length === 1 && long[0] >= 1000 ? long[0] : 0;
}

export function pixels(picture, { height, width, channels, first }, range, canvas) {
  canvas.width = width;
  canvas.height = height;
  const context = canvas.getContext("2d", { willReadFrequently: true });
  // The middle of the picture, in the shape of the input.
  const w = picture.videoWidth || picture.width, hh = picture.videoHeight || picture.height;
  const part = Math.min(w / width, hh / height);
  context.drawImage(picture, (w - part * width) / 2, (hh - part * height) / 2, part * width, part * height, 0, 0, width, height);
  const data = context.getImageData(0, 0, width, height).data;
  const made = new Float32Array(height * width * channels), turn = RANGES[range];
  for (let at = 0; at < height * width; at += 1) {
    const [r, g, b] = [data[4 * at], data[4 * at + 1], data[4 * at + 2]];
    const values = channels === 3 ? [r, g, b] : [0.299 * r + 0.587 * g + 0.114 * b];
    values.forEach((value, channel) => { made[first ? channel * height * width + at : at * channels + channel] = turn(value, channel); });
  }
  return made;
}

export async function samples(data, length, rate) {
  const context = new OfflineAudioContext(1, length, rate);
  const sound = await context.decodeAudioData(data);
  const source = context.createBufferSource();
  source.buffer = sound;
  source.connect(context.destination);
  source.start();
  return (await context.startRendering()).getChannelData(0);
}

export async function cameraFrame(show) {
  const stream = await navigator.mediaDevices.getUserMedia({ video: true });
  try {
    const video = document.createElement("video");
    video.srcObject = stream;
    video.muted = true;
    await video.play();
    await show(video);
  } finally {
    for (const track of stream.getTracks()) track.stop();
  }
}

export async function recorded(seconds) {
  const stream = await navigator.mediaDevices.getUserMedia({ audio: true });
  try {
    const recorder = new MediaRecorder(stream), parts = [];
    recorder.ondataavailable = (event) => parts.push(event.data);
    const ended = new Promise((done) => { recorder.onstop = done; });
    recorder.start();
    setTimeout(() => recorder.stop(), 1000 * seconds + 200);
    await ended;
    return await new Blob(parts).arrayBuffer();
  } finally {
    for (const track of stream.getTracks()) track.stop();
  }
}
