// Numbers with their units, for people.

const digits = (value: number): string => Number(value.toPrecision(4)).toString();

export function seconds(ps: number): string {
  if (!Number.isFinite(ps)) return 'unknown';
  for (const [unit, scale] of [['s', 1e12], ['ms', 1e9], ['us', 1e6], ['ns', 1e3]] as const)
    if (Math.abs(ps) >= scale) return `${digits(ps / scale)} ${unit}`;
  return `${digits(ps)} ps`;
}

// A time with as many digits more than usual as tell it from others that are `resolution` away; down to picoseconds.
export function instant(ps: number, resolution: number): string {
  for (const [unit, scale] of [['s', 1e12], ['ms', 1e9], ['us', 1e6], ['ns', 1e3]] as const) {
    if (!Number.isFinite(ps) || Math.abs(ps) < scale) continue;
    const usual = 3 - Math.floor(Math.log10(Math.abs(ps / scale)));
    const decimals = Math.min(Math.log10(scale), Math.ceil(Math.log10(scale / resolution) - 1e-9));
    if (decimals > usual) return `${Number((ps / scale).toFixed(decimals))} ${unit}`;
    break;
  }
  return seconds(ps);
}

// Times that are told together: those that differ are told apart, to a tenth of what lies between them.
export function instants(...times: number[]): string[] {
  const sorted = [...times].sort((a, b) => a - b);
  const least = sorted.reduce((gap, at, i) => (i > 0 && at > sorted[i - 1]! ? Math.min(gap, at - sorted[i - 1]!) : gap), Infinity);
  return times.map((at) => instant(at, least / 10));
}

// A text as it is where it fits into `room`, cut off where at least three letters of it do, else nothing.
export function fitted(text: string, room: number, widthOf: (text: string) => number): string {
  if (widthOf(text) <= room) return text;
  let low = 0, high = text.length; // letters that fit, and that do not
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (widthOf(`${text.slice(0, middle).trimEnd()}\u2026`) <= room) low = middle; else high = middle;
  }
  return low < 3 ? '' : `${text.slice(0, low).trimEnd()}\u2026`;
}

// Names of at most so many letters: without the words that all begin with, else the part behind the last point, else cut off.
export function shortNames(names: string[], most: number): string[] {
  if (names.every((name) => name.length <= most)) return names;
  let same = names[0]!.length;
  for (const name of names) while (!name.startsWith(names[0]!.slice(0, same))) --same;
  while (same > 0 && /[\p{L}\p{N}]/u.test(names[0]![same - 1]!)) --same; // whole words
  return names.map((name) => {
    const rest = name.slice(same) || name, part = name.slice(name.lastIndexOf('.') + 1);
    return rest.length <= most ? rest : part.length <= most && part.length > 0 ? part : `${rest.slice(0, most - 1)}\u2026`;
  });
}

export function bytes(value: number): string {
  for (const [unit, scale] of [['GiB', 2 ** 30], ['MiB', 2 ** 20], ['KiB', 2 ** 10]] as const)
    if (value >= scale) return `${digits(value / scale)} ${unit}`;
  return `${digits(value)} B`;
}

export function rate(value: number | null): string {
  if (value === null || !Number.isFinite(value) || value <= 0) return '-';
  for (const [unit, scale] of [['TB/s', 1e12], ['GB/s', 1e9], ['MB/s', 1e6], ['KB/s', 1e3]] as const)
    if (value >= scale) return `${digits(value / scale)} ${unit}`;
  return `${digits(value)} B/s`;
}

export const count = (value: number): string => value.toLocaleString('en-US');
export const percent = (share: number): string => (Number.isFinite(share) ? `${(share * 100).toFixed(1)} %` : '-');
export const plural = (n: number, word: string): string => `${count(n)} ${word}${n === 1 ? '' : 's'}`;
