// What is chosen, in all views at once.

export type Selection =
  | { kind: 'none' } | { kind: 'node'; node: number } | { kind: 'link'; link: number } | { kind: 'message'; message: number }
  | { kind: 'shard'; shard: number } | { kind: 'step'; step: number } | { kind: 'cut' } | { kind: 'chain'; messages: number[] };

export class Store {
  private current: Selection = { kind: 'none' };
  private readonly listeners: ((selection: Selection) => void)[] = [];

  get selection(): Selection { return this.current; }
  onChange(listener: (selection: Selection) => void): void { this.listeners.push(listener); }
  select(selection: Selection): void {
    this.current = selection;
    for (const listener of this.listeners) listener(selection);
  }
}
