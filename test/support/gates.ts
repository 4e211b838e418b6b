interface Gate {
  reached: PromiseWithResolvers<void>;
  opened: PromiseWithResolvers<void>;
}

/** Places in tools and hooks of this process where a test holds what runs, by name. */
export class Gates {
  private readonly gates = new Map<string, Gate>();

  /** Waits until the gate is opened, or rejects with the signal's reason. */
  async pass(name: string, signal?: AbortSignal): Promise<void> {
    const { reached, opened } = this.gate(name);
    reached.resolve();
    if (signal === undefined) return opened.promise;
    signal.throwIfAborted();
    const aborted = Promise.withResolvers<never>();
    const onAbort = () => aborted.reject(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      await Promise.race([opened.promise, aborted.promise]);
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
  }

  reached(name: string): Promise<void> {
    return this.gate(name).reached.promise;
  }

  open(name: string): void {
    this.gate(name).opened.resolve();
  }

  openAll(): void {
    for (const { opened } of this.gates.values()) opened.resolve();
  }

  private gate(name: string): Gate {
    let gate = this.gates.get(name);
    if (gate === undefined) {
      gate = { reached: Promise.withResolvers(), opened: Promise.withResolvers() };
      this.gates.set(name, gate);
    }
    return gate;
  }
}
