import type { Random } from '@elimit/core';

/** What a node does with one call. */
export interface Answer {
  readonly ms: number;
  /** `elimit`: refused by the node's own limiter, with the mark. */
  readonly end: 'success' | 'failure' | 'elimit';
}

/** A time in which a node is worse than can be tolerated (a twentieth of its calls fails) and should be isolated. */
export interface Fault {
  readonly node: number;
  readonly fromMs: number;
  readonly untilMs: number;
  /** After the fault the node is not well at once: isolating it in this time is no mistake. */
  readonly weakMs?: number;
}

/** One row of the comparison. All times in virtual milliseconds. */
export interface Scenario {
  readonly name: string;
  readonly about: string;
  readonly nodes: number;
  readonly durationMs: number;
  /** Calls per second of the whole service. */
  rate(ms: number): number;
  answer(node: number, ms: number, inflight: number, random: Random): Answer;
  readonly faults: readonly Fault[];
}

const NODES = 5;
const RATE = 200;
const FROM_MS = 10_000;
/** Answers of a healthy node: 10 to 30 ms, one in a thousand fails. */
const healthy = (random: Random): Answer => ({
  ms: 10 + Math.floor(random() * 21),
  end: random() < 0.001 ? 'failure' : 'success',
});
const REFUSED: Answer = { ms: 1, end: 'failure' };
export const HUNG: Answer = { ms: 1000, end: 'failure' }; // the caller's own timeout
const steady = (): number => RATE;

function shareRow(percent: number, speed: 'fast' | 'slow'): Scenario {
  const failureMs = speed === 'fast' ? 1 : 200;
  return {
    name: `${percent} % fail ${speed}`,
    about: `One node of five fails ${percent} % of its calls, each after ${failureMs} ms.`,
    nodes: NODES,
    durationMs: 70_000,
    rate: steady,
    faults: percent > 5 ? [{ node: 0, fromMs: FROM_MS, untilMs: 70_000 }] : [],
    answer: (node, ms, _inflight, random) =>
      node === 0 && ms >= FROM_MS && random() < percent / 100
        ? { ms: failureMs, end: 'failure' }
        : healthy(random),
  };
}

/** The same fault, a quarter longer or shorter from seed to seed: no arm shall profit from a length that suits its timers. */
function lengthOf(ms: number, seed: number): number {
  return Math.round(ms * (0.75 + ((seed * 0.618) % 1) / 2));
}

export function outageRow(
  seed: number,
  name: string,
  about: string,
  options: {
    nodes?: number;
    rate?: number;
    outageMs: number;
    answer?: Answer;
    /** How many of the nodes, the first ones. */
    down?: number;
    durationMs?: number;
  },
): Scenario {
  const { nodes = NODES, rate = RATE, outageMs, answer = REFUSED } = options;
  const { down = 1, durationMs = 90_000 } = options;
  const untilMs = FROM_MS + lengthOf(outageMs, seed);
  return {
    name,
    about,
    nodes,
    durationMs,
    rate: () => rate,
    // what began in the fault may end after it
    faults: Array.from({ length: down }, (_, node) => ({
      node,
      fromMs: FROM_MS,
      untilMs,
      weakMs: answer.ms,
    })),
    answer: (node, ms, _inflight, random) =>
      node < down && ms >= FROM_MS && ms < untilMs ? answer : healthy(random),
  };
}

const weakReturn = (seed: number): Scenario => {
  const untilMs = FROM_MS + lengthOf(10_000, seed);
  return {
    name: 'weak return',
    about:
      'The only node is down for 10 s, then takes few calls at once, one more each second, and fails the rest fast.',
    nodes: 1,
    durationMs: 60_000,
    rate: steady,
    faults: [{ node: 0, fromMs: FROM_MS, untilMs, weakMs: 10_000 }],
    answer: (_node, ms, inflight, random) => {
      if (ms >= FROM_MS && ms < untilMs) return REFUSED;
      const capacity =
        ms < untilMs ? Number.POSITIVE_INFINITY : 1 + Math.floor((ms - untilMs) / 1000);
      return inflight > capacity ? REFUSED : healthy(random);
    },
  };
};

/** One node is down again and again. */
export function flapRow(
  name: string,
  options: {
    nodes?: number;
    rate?: number;
    downMs?: number;
    everyMs?: number;
    answer?: Answer;
    /** Share of the calls to any node that fails besides. */
    failing?: number;
    durationMs?: number;
  } = {},
): Scenario {
  const { nodes = NODES, rate = RATE, downMs = 2000, everyMs = 10_000 } = options;
  const { answer = REFUSED, failing = 0, durationMs = 90_000 } = options;
  return {
    name,
    about:
      `One node of ${nodes} is down for ${downMs / 1000} s of every ${everyMs / 1000} s; ${rate} calls a second` +
      `${answer === HUNG ? ', which hang for 1 s' : ''}${failing > 0 ? `, of which ${failing * 100} % fail on any node` : ''}.`,
    nodes,
    durationMs,
    rate: () => rate,
    faults: Array.from({ length: Math.ceil((durationMs - FROM_MS) / everyMs) }, (_, i) => {
      const fromMs = FROM_MS + everyMs * i;
      return { node: 0, fromMs, untilMs: fromMs + downMs, weakMs: answer.ms };
    }),
    answer: (node, ms, _inflight, random) => {
      if (node === 0 && ms >= FROM_MS && (ms - FROM_MS) % everyMs < downMs) return answer;
      return failing > 0 && random() < failing ? REFUSED : healthy(random);
    },
  };
}

/** All nodes fail together, for a moment. */
export function blipRow(
  name: string,
  options: {
    nodes?: number;
    rate?: number;
    blipMs?: number;
    everyMs?: number;
    share?: number;
  } = {},
): Scenario {
  const { nodes = NODES, rate = RATE, blipMs = 100, everyMs = 10_000, share = 1 } = options;
  return {
    name,
    about: `Every ${everyMs / 1000} s ${share === 1 ? 'all' : `${share * 100} % of the`} calls to all ${nodes} nodes fail for ${blipMs} ms; ${rate} calls a second.`,
    nodes,
    durationMs: 70_000,
    rate: () => rate,
    faults: [],
    answer: (_node, ms, _inflight, random) =>
      ms >= FROM_MS && (ms - FROM_MS) % everyMs < blipMs && (share === 1 || random() < share)
        ? REFUSED
        : healthy(random),
  };
}

const bursty: Scenario = {
  name: 'bursts of calls',
  about:
    'Ten times the calls for 200 ms of every 5 s; one node of five fails 30 % of its calls, fast.',
  nodes: NODES,
  durationMs: 70_000,
  rate: (ms) => (ms % 5000 < 200 ? 10 * RATE : RATE / 4),
  faults: [{ node: 0, fromMs: FROM_MS, untilMs: 70_000 }],
  answer: (node, ms, _inflight, random) =>
    node === 0 && ms >= FROM_MS && random() < 0.3 ? REFUSED : healthy(random),
};

const shedding: Scenario = {
  name: 'shedding load',
  about:
    'For 30 s all five nodes refuse six of ten calls by their own limiter (503, marked ELIMIT).',
  nodes: NODES,
  durationMs: 70_000,
  rate: steady,
  faults: [],
  answer: (_node, ms, _inflight, random) =>
    ms >= FROM_MS && ms < 40_000 && random() < 0.6 ? { ms: 1, end: 'elimit' } : healthy(random),
};

const everywhere = (percent: number): Scenario => ({
  name: `${percent} % fail everywhere`,
  about: `All five nodes fail ${percent} % of their calls after 200 ms: within the tolerance.`,
  nodes: NODES,
  durationMs: 120_000,
  rate: steady,
  faults: [],
  answer: (_node, _ms, _inflight, random) =>
    random() < percent / 100 ? { ms: 200, end: 'failure' } : healthy(random),
});

/** All rows; the seed moves the lengths of the faults. */
export const scenarios = (seed: number): readonly Scenario[] => [
  ...[1, 2, 5, 10, 20, 30, 50].flatMap((percent) => [
    shareRow(percent, 'fast'),
    shareRow(percent, 'slow'),
  ]),
  everywhere(1),
  everywhere(5),
  outageRow(seed, 'down 10 s', 'One node of five refuses connections for 10 s.', {
    outageMs: 10_000,
    answer: REFUSED,
  }),
  outageRow(seed, 'down 60 s', 'One node of five refuses connections for 60 s.', {
    outageMs: 60_000,
    answer: REFUSED,
  }),
  outageRow(
    seed,
    'hung 20 s',
    'One node of five lets calls hang for 20 s; callers give up after 1 s.',
    {
      outageMs: 20_000,
      answer: HUNG,
    },
  ),
  outageRow(seed, 'alone, down 5 s', 'The only node refuses connections for 5 s.', {
    nodes: 1,
    outageMs: 5000,
    answer: REFUSED,
  }),
  outageRow(seed, 'alone, down 30 s', 'The only node refuses connections for 30 s.', {
    nodes: 1,
    outageMs: 30_000,
    answer: REFUSED,
  }),
  outageRow(seed, 'alone, hung 10 s', 'The only node lets calls hang for 10 s.', {
    nodes: 1,
    outageMs: 10_000,
    answer: HUNG,
  }),
  outageRow(
    seed,
    'low traffic, down',
    'The only node, one call a second, refuses connections for 60 s.',
    {
      nodes: 1,
      rate: 1,
      outageMs: 60_000,
      answer: REFUSED,
      durationMs: 200_000,
    },
  ),
  {
    name: 'low traffic, well',
    about: 'The only node, one call in two seconds, fails 2 % of its calls: within the tolerance.',
    nodes: 1,
    durationMs: 1_200_000,
    rate: () => 0.5,
    faults: [],
    answer: (_node, _ms, _inflight, random) => (random() < 0.02 ? REFUSED : healthy(random)),
  },
  weakReturn(seed),
  flapRow('flapping'),
  blipRow('blip everywhere'),
  bursty,
  shedding,
];
