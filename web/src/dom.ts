// Elements by code. Texts are always text nodes: what a file names itself is never markup.

type Attributes = Record<string, string | number | boolean>;

export function element<K extends keyof HTMLElementTagNameMap>(tag: K, attributes: Attributes = {}, ...children: (Node | string)[]): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false) continue;
    made.setAttribute(name, value === true ? '' : String(value));
  }
  made.append(...children);
  return made;
}

export function button(text: string, label: string, run: () => void): HTMLButtonElement {
  const made = element('button', { type: 'button', 'aria-label': label, title: label }, text);
  made.addEventListener('click', run);
  return made;
}

export interface Surface { canvas: HTMLCanvasElement; context: CanvasRenderingContext2D; width: number; height: number }

// A canvas of the size that it is shown at, in device pixels; drawn in CSS pixels. `draw` is called after each change
// of size, and at most once a frame after redraw().
export class Canvas {
  readonly canvas: HTMLCanvasElement;
  readonly context: CanvasRenderingContext2D;
  width = 0;
  height = 0;
  private waiting = false;

  constructor(className: string, label: string, private readonly draw: () => void) {
    this.canvas = element('canvas', { class: className, tabindex: 0, role: 'img', 'aria-label': label });
    const context = this.canvas.getContext('2d');
    if (context === null) throw new Error('this browser draws no canvas');
    this.context = context;
    new ResizeObserver(() => this.fit()).observe(this.canvas);
  }

  fit(): void {
    const box = this.canvas.getBoundingClientRect();
    const scale = window.devicePixelRatio || 1;
    this.width = Math.max(1, this.canvas.clientWidth || box.width);
    this.height = Math.max(1, this.canvas.clientHeight || box.height);
    this.canvas.width = Math.round(this.width * scale);
    this.canvas.height = Math.round(this.height * scale);
    this.context.setTransform(scale, 0, 0, scale, 0, 0);
    this.draw();
  }

  redraw(): void {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.draw();
    });
  }

  // In CSS pixels from its corner.
  at(event: MouseEvent): [number, number] {
    const box = this.canvas.getBoundingClientRect();
    return [event.clientX - box.left - this.canvas.clientLeft, event.clientY - box.top - this.canvas.clientTop];
  }
}

// Drags and clicks of a canvas: a press that does not move is a click.
export function onPointer(canvas: Canvas, drag: (dx: number, dy: number) => void, click: (x: number, y: number) => void): void {
  let from: [number, number] | null = null;
  let moved = false;
  canvas.canvas.addEventListener('pointerdown', (event) => {
    from = [event.clientX, event.clientY];
    moved = false;
    canvas.canvas.setPointerCapture(event.pointerId);
  });
  canvas.canvas.addEventListener('pointermove', (event) => {
    if (from === null) return;
    const dx = event.clientX - from[0], dy = event.clientY - from[1];
    if (!moved && Math.hypot(dx, dy) < 4) return;
    moved = true;
    from = [event.clientX, event.clientY];
    drag(dx, dy);
  });
  canvas.canvas.addEventListener('pointerup', (event) => {
    if (from !== null && !moved) click(...canvas.at(event));
    from = null;
  });
}
