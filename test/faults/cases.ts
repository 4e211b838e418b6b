import { type Scenario, scenarios } from './scenarios.ts';

/** What happens to the worker, or to what it stands on, while the session stands at its point. */
export const blows = ['kill', 'freeze', 'server', 'locked', 'full', 'ahead', 'behind'] as const;
export type Blow = (typeof blows)[number];

/** What somebody sends to the session, and whether its worker is still alive then. */
export interface Twist {
  what: 'steer' | 'followUp' | 'abort';
  when: 'at the point' | 'while no worker lives';
}

export interface FaultCase {
  /** Names it for good: `--only NAME` repeats it alone. */
  name: string;
  blow: Blow;
  scenario: Scenario;
  point: string;
  twist?: Twist;
}

const twists: Twist[] = (['steer', 'followUp', 'abort'] as const).flatMap((what) =>
  (['at the point', 'while no worker lives'] as const).map((when) => ({ what, when })),
);

function caseOf(blow: Blow, scenario: Scenario, point: string, twist?: Twist): FaultCase {
  const ending = twist === undefined ? '' : `: ${twist.what} ${twist.when}`;
  return {
    name: `${blow} ${scenario.name}: ${point}${ending}`,
    blow,
    scenario,
    point,
    ...(twist === undefined ? {} : { twist }),
  };
}

/** Every case there is: each point that a scenario passes, with every blow and every message that makes sense there. */
export function allCases(points: ReadonlyMap<string, readonly string[]>): FaultCase[] {
  return scenarios.flatMap((scenario) =>
    (points.get(scenario.name) ?? []).flatMap((point) =>
      blows.flatMap((blow) => [
        caseOf(blow, scenario, point),
        ...(blow === 'kill' ? twists.map((twist) => caseOf(blow, scenario, point, twist)) : []),
      ]),
    ),
  );
}

/** How many of the cases of a kind are drawn. */
export interface Choice {
  seed: number;
  /** Cases in all, or everything that fits into the time by hand. */
  cases?: number;
  only?: string;
}

/** Without a number: every kill without a message, and of the other kinds as many as the seed draws. */
export function choose(all: readonly FaultCase[], { seed, cases, only }: Choice): FaultCase[] {
  const named = only === undefined ? all : all.filter(({ name }) => name.includes(only));
  if (only !== undefined && cases === undefined) return [...named];
  const drawn = shuffled(named, seed);
  if (cases !== undefined) return drawn.slice(0, cases);
  const plain = drawn.filter(({ blow, twist }) => blow === 'kill' && twist === undefined);
  const share = (kind: (each: FaultCase) => boolean, count: number) => drawn.filter(kind).slice(0, count);
  return [
    ...plain,
    ...twists.flatMap(({ what, when }) => share(({ twist }) => twist?.what === what && twist.when === when, 72)),
    ...blows.slice(1).flatMap((blow) => share((each) => each.blow === blow, 36)),
  ];
}

/** mulberry32 with Fisher and Yates: the same for a seed on every machine. */
function shuffled<T>(items: readonly T[], seed: number): T[] {
  let state = seed >>> 0;
  const random = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const list = [...items];
  for (let last = list.length - 1; last > 0; last--) {
    const other = Math.floor(random() * (last + 1));
    const swapped = list[last] as T;
    list[last] = list[other] as T;
    list[other] = swapped;
  }
  return list;
}
