// Preloaded by a worker process of the fault matrix: moves its clock by EVERTURN_FAULT_CLOCK milliseconds.
const moved = Number(process.env.EVERTURN_FAULT_CLOCK ?? 0);
if (moved !== 0) {
  const Real = Date;
  const now = () => Real.now() + moved;
  globalThis.Date = new Proxy(Real, {
    get: (target, name, receiver) => (name === 'now' ? now : Reflect.get(target, name, receiver)),
    construct: (target, args, newTarget) => Reflect.construct(target, args.length === 0 ? [now()] : args, newTarget),
    apply: () => new Real(now()).toString(),
  });
}
