import { breaker, type Channel, type ChannelOptions, createChannel } from '@elimit/axios';
import { verdictOfError, verdictOfStatus } from '@elimit/client';
import axios, { type AxiosInstance } from 'axios';
import { type Fleet, withFleet } from './fleet.js';
import { type CallEnd, offer, saturate, tally } from './load.js';
import type { ServiceOptions } from './service.js';

/** Figures of a scenario, and everything in it that was promised and did not come true. */
export interface Finding {
  readonly name: string;
  readonly about: string;
  readonly figures: Readonly<Record<string, unknown>>;
  readonly problems: readonly string[];
}

export interface Setting {
  /** Of the loads, in milliseconds. */
  readonly forMs: number;
  /** What one node does when it is never idle, in calls per second: measured in this run. */
  readonly perNode: number;
}

const SLOTS = 5;
const WORK_MS = 50;
const TIMEOUT_MS = 2000;
const NODE: ServiceOptions = { slots: SLOTS, workMs: WORK_MS, limit: 'auto' };
const BARE: ServiceOptions = { slots: SLOTS, workMs: WORK_MS };
/** An adaptive limit starts low and feels its way up. */
const WARM_UP_MS = 6000;

export const MARKS = {
  maxAmplification: 1.15,
  minGoodput: 0.9,
  /** A full node must not get more tries than its equal share. */
  maxShareOfFullNode: 1 / 3,
  /** The system is normal when this share of calls is good again, in each half second from then on. */
  normalRatio: 0.95,
  maxRecoveryMs: 5000,
} as const;

const ratio = (value: number): number => Math.round(value * 1000) / 1000;

/** Measured, not computed: timers of a busy machine make 50 ms a little more. */
export async function capacityOfNode(forMs: number): Promise<number> {
  return withFleet([BARE], async ({ urls }) => {
    const http = axios.create({ baseURL: urls[0] as string });
    // more callers than slots, so that no slot waits for a caller
    return saturate(2 * SLOTS, forMs, () => http.get('/work'));
  });
}

function open(fleet: Fleet, options: ChannelOptions = {}) {
  const channel = createChannel({
    name: 'work',
    nodes: fleet.urls,
    balancer: 'leastLoaded',
    timeoutMs: TIMEOUT_MS,
    ...options,
  });
  return { channel, http: breaker(axios.create(), channel) };
}

const sum = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0);
const hitsOf = (counts: readonly { hits: number }[]): number[] => counts.map(({ hits }) => hits);
const opensOf = (channel: Channel): number[] => channel.endpoints().map(({ nBreak }) => nBreak);
const since = (before: readonly number[], after: readonly number[]): number[] =>
  after.map((value, i) => value - (before[i] ?? 0));

/** Three equal nodes are offered more than they can do together. */
export async function overload(times: number, { forMs, perNode }: Setting): Promise<Finding> {
  return withFleet([NODE, NODE, NODE], async (fleet) => {
    const { channel, http } = open(fleet);
    const rate = times * 3 * perNode;
    const call = () => http.get('/work');
    await offer({ rate, forMs: WARM_UP_MS, call });
    const before = await fleet.order();
    const opened = opensOf(channel);
    const ends = await offer({ rate, forMs, call });
    const after = await fleet.order();
    const hits = since(hitsOf(before), hitsOf(after));
    const seen = tally(ends);
    const endpoints = channel.endpoints();
    channel.close();
    const amplification = sum(hits) / ends.length;
    const goodput = (seen.byEnd.ok ?? 0) / (forMs / 1000) / (3 * perNode);
    const nBreak = since(
      opened,
      endpoints.map((endpoint) => endpoint.nBreak),
    );
    const problems: string[] = [];
    if (amplification > MARKS.maxAmplification)
      problems.push(`amplification ${ratio(amplification)}`);
    if (goodput < MARKS.minGoodput) problems.push(`goodput ${ratio(goodput)} of capacity`);
    if (sum(nBreak) > 0) problems.push(`nodes were isolated: ${nBreak.join(', ')}`);
    return {
      name: `overload ${times}x`,
      about: `${times} times what three nodes can do; limit('auto') on each`,
      figures: {
        offeredPerSecond: Math.round(rate),
        goodput: ratio(goodput),
        amplification: ratio(amplification),
        ...seen,
        hitsPerNode: hits,
        nBreak,
        failures: endpoints.map(({ failures }) => failures),
        refusals: endpoints.map(({ refusals }) => refusals),
        limits: after.map(({ maxConcurrency }) => maxConcurrency),
      },
      problems,
    };
  });
}

/** One node of three can do a fifth of the others: it refuses much, and fast. */
export async function fullNode({ forMs, perNode }: Setting): Promise<Finding> {
  const nodes: ServiceOptions[] = [NODE, NODE, { ...NODE, slots: 1, limit: 1 }];
  const capacity = (2 + 1 / SLOTS) * perNode;
  const rate = 0.8 * capacity;
  const run = (options: ChannelOptions) =>
    withFleet(nodes, async (fleet) => {
      const { channel, http } = open(fleet, options);
      const call = () => http.get('/work');
      await offer({ rate, forMs: WARM_UP_MS, call });
      const before = await fleet.order();
      const opened = opensOf(channel);
      const ends = await offer({ rate, forMs, call });
      const hits = since(hitsOf(before), hitsOf(await fleet.order()));
      const endpoints = channel.endpoints();
      channel.close();
      const seen = tally(ends);
      return {
        shareOfFullNode: ratio((hits[2] ?? 0) / sum(hits)),
        amplification: ratio(sum(hits) / ends.length),
        goodOfOffered: ratio((seen.byEnd.ok ?? 0) / ends.length),
        ...seen,
        hitsPerNode: hits,
        refusals: endpoints.map(({ refusals }) => refusals),
        nBreak: since(
          opened,
          endpoints.map(({ nBreak }) => nBreak),
        ),
      };
    });
  const ours = await run({});
  // the same, by a client that takes a refusal for a fast answer
  const control = await run({
    classify: (ended) => {
      const given = ended.ok ? verdictOfStatus(200) : verdictOfError(ended.error);
      return given.refusal
        ? { outcome: 'success', status: 503, retriable: true, safeToResend: true }
        : given;
    },
  });
  const problems: string[] = [];
  if (ours.shareOfFullNode > MARKS.maxShareOfFullNode) {
    problems.push(`the full node got ${ours.shareOfFullNode} of the tries`);
  }
  if (ours.goodOfOffered < MARKS.minGoodput) {
    problems.push(`good ${ours.goodOfOffered} of what was offered`);
  }
  if (ours.amplification > MARKS.maxAmplification) {
    problems.push(`amplification ${ours.amplification}`);
  }
  if (sum(ours.nBreak) > 0) problems.push('a node was isolated');
  return {
    name: 'a full node',
    about:
      'One node of three has a fifth of the others’ capacity; 0.8 of all capacity offered, least loaded node first',
    figures: { ...ours, aClientThatReadsRefusalsAsFastAnswers: control },
    problems,
  };
}

const STORM = {
  rate: 0.8,
  calmMs: 4000,
  stallMs: 3000,
  stallWorkMs: 1500,
  afterMs: 8000,
  tries: 4,
};

/** For a while every node is almost still, and users try again and again. Then the nodes are well: are the users? */
export async function retryStorm({ perNode }: Setting): Promise<Finding> {
  const stormOn = (node: ServiceOptions, client: (fleet: Fleet) => [AxiosInstance, () => void]) =>
    withFleet([node, node, node], async (fleet) => {
      const [http, close] = client(fleet);
      const finding = await storm(fleet, http, STORM.rate * 3 * perNode);
      close();
      return finding;
    });
  const ours = await stormOn(NODE, (fleet) => {
    const { channel, http } = open(fleet);
    return [http, () => channel.close()];
  });
  const control = await stormOn(BARE, (fleet) => {
    let next = 0;
    const http = axios.create({ timeout: TIMEOUT_MS });
    http.interceptors.request.use((config) => {
      config.baseURL = fleet.urls[next++ % fleet.urls.length] as string;
      return config;
    });
    return [http, () => {}];
  });
  const problems: string[] = [];
  if (ours.normalAfterMs === null || ours.normalAfterMs > MARKS.maxRecoveryMs) {
    problems.push(`normal again after ${ours.normalAfterMs ?? 'more than 8000'} ms`);
  }
  return {
    name: 'retry storm',
    about: `0.8 of capacity; for 3 s each piece of work takes 1.5 s instead of ${WORK_MS} ms, and users try up to ${STORM.tries} times`,
    figures: { ...ours, bareServicesAndPlainAxios: control },
    problems,
  };
}

async function storm(fleet: Fleet, http: AxiosInstance, rate: number) {
  const { calmMs, stallMs, stallWorkMs, afterMs, tries } = STORM;
  let attempts = 0;
  const stalls = [
    { atMs: calmMs, workMs: stallWorkMs },
    { atMs: calmMs + stallMs, workMs: WORK_MS },
  ];
  const before = sum(hitsOf(await fleet.order()));
  const ends = await offer({
    rate,
    forMs: calmMs + stallMs + afterMs,
    at(nowMs) {
      if (nowMs >= (stalls[0]?.atMs ?? Number.POSITIVE_INFINITY)) {
        void fleet.order({ workMs: (stalls.shift() as { workMs: number }).workMs });
      }
    },
    async call() {
      for (let left = tries; ; left--) {
        attempts += 1;
        try {
          return await http.get('/work');
        } catch (error) {
          if (left <= 1) throw error;
        }
      }
    },
  });
  const after = await fleet.order();
  const hits = sum(hitsOf(after)) - before;
  const stallEndMs = calmMs + stallMs;
  return {
    calls: ends.length,
    usersAttempts: attempts,
    hits,
    normalAfterMs: normalAfter(ends, stallEndMs, stallEndMs + afterMs),
    limits: after.map(({ maxConcurrency }) => maxConcurrency),
    byEndAfterwards: tally(ends.filter(({ atMs }) => atMs >= stallEndMs)).byEnd,
    goodByHalfSecond: halfSeconds(ends, calmMs, stallEndMs + afterMs).map(ratio),
  };
}

const WINDOW_MS = 500;

/** Share of good calls among those that began in each half second. */
function halfSeconds(ends: readonly CallEnd[], fromMs: number, toMs: number): number[] {
  const shares: number[] = [];
  for (let at = fromMs; at < toMs; at += WINDOW_MS) {
    const begun = ends.filter(({ atMs }) => atMs >= at && atMs < at + WINDOW_MS);
    shares.push(begun.filter(({ end }) => end === 'ok').length / begun.length);
  }
  return shares;
}

/** From when on every half second is good; `null` for never. */
function normalAfter(ends: readonly CallEnd[], fromMs: number, toMs: number): number | null {
  const shares = halfSeconds(ends, fromMs, toMs);
  const lastBad = shares.findLastIndex((share) => !(share >= MARKS.normalRatio));
  return lastBad === shares.length - 1 ? null : (lastBad + 1) * WINDOW_MS;
}

/** User → front → back: the time left goes with the call, and shrinks. */
export async function deadlines(): Promise<Finding> {
  return withFleet([BARE], (back) =>
    withFleet([{ ...BARE, limit: 'unlimited', behind: back.urls }], async (front) => {
      const { channel, http } = open(front);
      const long = await offer({
        rate: 50,
        forMs: 2000,
        call: () => http.get('/work', { timeout: 900 }),
      });
      const [atFront, atBack] = [...(await front.order()), ...(await back.order())];
      const first = Math.max(...(atFront?.timeouts ?? []));
      const second = Math.max(...(atBack?.timeouts ?? []));
      // users in a hurry: 60 ms is enough for neither hop
      const hurried = await offer({
        rate: 50,
        forMs: 2000,
        call: () => http.get('/work', { carriedTimeoutMs: 60 }),
      });
      const [later] = await front.order();
      const behind = later?.endpoints ?? [];
      const mine = channel.endpoints();
      channel.close();
      const problems: string[] = [];
      if (!(first <= 900)) problems.push(`the front was told ${first} ms of 900`);
      // the front works for a while before it asks the back
      if (!(second <= first - WORK_MS + 1))
        problems.push(`the back was told ${second} ms of ${first}`);
      const isolated = [...mine, ...behind].filter(
        ({ nBreak, recentErrors }) => nBreak + recentErrors > 0,
      );
      if (isolated.length > 0) {
        problems.push(
          `short deadlines were held against ${isolated.map(({ name }) => name).join(', ')}`,
        );
      }
      const short = tally(hurried);
      if ((short.byEnd.ERR_TIMEOUT ?? 0) < hurried.length / 2) {
        problems.push('the short deadlines did not bite: the scenario shows nothing');
      }
      return {
        name: 'deadlines over two hops',
        about:
          'User, front, back; the user waits 900 ms, then users come whose own deadline is 60 ms, of 200 that it takes',
        figures: {
          toldTheFrontMs: first,
          toldTheBackMs: second,
          long: tally(long),
          short,
          nBreak: [...mine, ...behind].map(({ nBreak }) => nBreak),
          recentErrors: [...mine, ...behind].map(({ recentErrors }) => recentErrors),
        },
        problems,
      };
    }),
  );
}
