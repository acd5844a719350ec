// Colours that survive colour-blindness and grey print: cividis, from dark blue to yellow, in one order of lightness.
import { interpolateCividis } from 'd3-scale-chromatic';

export const heatColor = (share: number): string => interpolateCividis(Math.max(0, Math.min(1, Number.isFinite(share) ? share : 0)));

const parsed = new Map<number, [number, number, number]>();
// The same in numbers, in 64 tones.
export function heatTone(share: number): [number, number, number] {
  const tone = Math.round(Math.max(0, Math.min(1, share)) * 63);
  let found = parsed.get(tone);
  if (found === undefined) {
    const [r, g, b] = interpolateCividis(tone / 63).match(/\d+/g)!.map(Number);
    found = [r!, g!, b!];
    parsed.set(tone, found);
  }
  return found;
}

// Whether dark text is easier to read on '#rrggbb' than white.
export function isLight(color: string): boolean {
  const [r, g, b] = [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16) / 255).map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r! + 0.7152 * g! + 0.0722 * b! > 0.179;
}

// Of lines and points, told apart by the colour-blind and in grey together with their markers and labels: Okabe and Ito's, the light ones darker.
export const SERIES_COLORS = ['#0072b2', '#d55e00', '#009e73', '#b5518f', '#2f9fd6', '#a87600', '#56616e', '#7a1f1f'];
