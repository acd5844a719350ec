// Play, pause and the place on the clock; one turn of the whole takes ten seconds.
import { button, element } from './dom';
import { seconds } from './words';

export interface Clock { root: HTMLElement; set: (time: number) => void; now: () => number; stop: () => void; setSpan: (span: number, text?: (time: number) => string) => void }

export function clock(whole: number, onTime: (time: number) => void): Clock {
  const turn = 10_000;
  let span = whole;
  let words = (time: number): string => `${seconds(time)} of ${seconds(span)}`;
  let time = 0, playing = false, before = 0, speed = 1, gone = false;
  const slider = element('input', { type: 'range', min: 0, max: 1000, value: 0, step: 'any', 'aria-label': 'Time in the schedule' });
  const text = element('output', { 'aria-label': 'Time shown' }, seconds(0));
  const play = button('\u25b6 Play', 'Play the schedule', () => {
    playing = !playing;
    if (playing && time >= span) set(0);
    play.textContent = playing ? '\u23f8 Pause' : '\u25b6 Play';
    play.setAttribute('aria-label', playing ? 'Pause the schedule' : 'Play the schedule');
    before = performance.now();
    if (playing) requestAnimationFrame(tick);
  });
  const pace = element('select', { 'aria-label': 'Speed of playing' });
  for (const [value, name] of [[0.1, '0.1x'], [0.25, '0.25x'], [1, '1x'], [4, '4x']] as const) pace.append(element('option', value === 1 ? { value, selected: true } : { value }, name));
  pace.addEventListener('change', () => { speed = Number(pace.value); });
  const set = (to: number): void => {
    time = Math.max(0, Math.min(span, to));
    slider.value = String(span > 0 ? (1000 * time) / span : 0);
    slider.setAttribute('aria-valuetext', words(time));
    text.textContent = words(time);
    onTime(time);
  };
  const tick = (now: number): void => {
    if (!playing || gone) return;
    const elapsed = Math.max(0, now - before);
    before = now;
    set(time + (elapsed / turn) * span * speed);
    if (time >= span) play.click(); else requestAnimationFrame(tick);
  };
  slider.addEventListener('input', () => set((Number(slider.value) / 1000) * span));
  const root = element('div', { class: 'bar', role: 'group', 'aria-label': 'Clock' }, play, slider, text, pace);
  const setSpan = (to: number, say?: (time: number) => string): void => {
    span = to;
    words = say ?? ((at) => `${seconds(at)} of ${seconds(span)}`);
    set(0);
  };
  return { root, set, now: () => time, stop: () => { gone = true; }, setSpan };
}
