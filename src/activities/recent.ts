/** The entries used last, up to a number: older ones are forgotten. */
export class Recent<Value> {
  private readonly values = new Map<string, Value>();
  private readonly max: number;

  constructor(max: number) {
    this.max = max;
  }

  get(key: string): Value | undefined {
    const value = this.values.get(key);
    if (value === undefined) return undefined;
    this.values.delete(key);
    this.values.set(key, value);
    return value;
  }

  set(key: string, value: Value): void {
    this.values.delete(key);
    this.values.set(key, value);
    if (this.values.size <= this.max) return;
    const oldest = this.values.keys().next();
    if (!oldest.done) this.values.delete(oldest.value);
  }
}
