// Whether what a model needs fits limits; the same rules as `openneutron fits`.

const KIB = 1024;
const grown = (from, to) => {
  const found = [];
  for (let value = from; value <= to; value *= 2) { found.push(value); if (value * 1.5 <= to) found.push(value * 1.5); }
  return found;
};

// Positions of the sliders; the last one, beyond the list, is no limit of the user's.
export const SCALES = {
  sram: grown(8 * KIB, 16384 * KIB),
  flash: grown(16 * KIB, 131072 * KIB),
  milliseconds: [1, 2, 3, 4, 5].flatMap((power) => [1, 2, 5].map((step) => step * 10 ** (power - 3))).concat([1000]),
};

// `row` is one of the engine's; `limits` has 0 for what the user does not limit.
export function judge(row, chip, limits) {
  const { need } = row;
  const sram = limits.sram || row.sram_limit, flash = limits.flash || row.flash_limit;
  const short = [];
  if (!need.on_npu) short.push("nothing of it runs on the NPU");
  if (need.sram_bytes > sram) short.push(`${(need.sram_bytes - sram).toLocaleString("en")} bytes of ${chip.ram} short`);
  if (flash && need.flash_bytes > flash) short.push(`${(need.flash_bytes - flash).toLocaleString("en")} bytes of flash short`);
  if (limits.milliseconds && need.milliseconds_high > limits.milliseconds) {
    short.push(`up to ${(need.milliseconds_high - limits.milliseconds).toFixed(3)} ms late`);
  }
  return { fits: !short.length, short: short.join(", "), sram, flash };
}
