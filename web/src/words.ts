// Numbers with their units, for people.

const digits = (value: number): string => Number(value.toPrecision(4)).toString();

export function seconds(ps: number): string {
  if (!Number.isFinite(ps)) return 'unknown';
  for (const [unit, scale] of [['s', 1e12], ['ms', 1e9], ['us', 1e6], ['ns', 1e3]] as const)
    if (Math.abs(ps) >= scale) return `${digits(ps / scale)} ${unit}`;
  return `${digits(ps)} ps`;
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
