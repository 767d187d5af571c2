import type { RateQuota, RateStoreContext, RateStoreSession, StoreAnswer } from '@elimit/core';
import type { Connection } from './client.js';
import { redisKey } from './key.js';
import { LEAST_BATCH, type TakeReply } from './script.js';

/** The most requests put into one call of the script. */
const MOST_PER_CALL = 1000;
/** While a key is short of tokens its lease is renewed no more often than half a batch takes to come in, and at least this often. */
const LONGEST_PAUSE_US = 100_000;
/** A refusal is repeated without asking for no longer than this: another process may reset the key, or give back. */
const LONGEST_REFUSAL_US = 1_000_000;
/** Keys remembered here; beyond, those that were looked at longest ago are let go. */
const MOST_KEYS = 100_000;
/** Keys looked at for each new one, to let go of those that hold nothing. */
const SWEEP = 4;
/** Longer keys are held by their hash. */
const LONGEST_KEY = 256;
const PROBE_KEY = ' probe';
const NOT_AT_ALL = 0;

interface Pending {
  readonly n: number;
  readonly quota: RateQuota;
  readonly resolve: (answer: StoreAnswer) => void;
  readonly reject: (error: unknown) => void;
}

/** What this process knows and holds of one key. */
interface Purse {
  readonly id: string;
  /** Tokens of its lease not yet spent... */
  held: number;
  /** ...to be spent before this, on this process's clock. */
  endsUs: number;
  /** Tokens that the store had when it last answered. */
  left: number;
  fullAtUs: number;
  /** Until when costs of `refusedN` or more have to wait, as far as is known... */
  refusedUntilUs: number;
  /** ...by an answer to what was asked then: it is repeated for a while only. */
  askedUs: number;
  refusedN: number;
  rate: number;
  burst: number;
  isAsking: boolean;
  readonly line: Pending[];
}

export interface RedisSessionOptions {
  readonly context: RateStoreContext;
  readonly connection: Connection;
  readonly prefix: string;
  readonly holder: string;
  /** 0: no leases. */
  readonly leaseUs: number;
  readonly nowUs: (() => number) | undefined;
}

/** One limiter's dealings with Redis: asks for whole lines at once, leases, and spends leases here. */
export class RedisSession implements RateStoreSession {
  readonly #context: RateStoreContext;
  readonly #connection: Connection;
  readonly #prefix: string;
  readonly #holder: string;
  readonly #toldUs: (() => number) | undefined;
  #leaseUs: number;
  #holders = 1;
  readonly #purses = new Map<string, Purse>();
  /** What is under way; none of it rejects. */
  readonly #asks = new Set<Promise<void>>();
  /** Gives back what leases that ended still held; set while any lease runs. */
  #returnTimer: unknown;

  constructor(options: RedisSessionOptions) {
    this.#context = options.context;
    this.#connection = options.connection;
    this.#prefix = options.prefix;
    this.#holder = options.holder;
    this.#leaseUs = options.leaseUs;
    this.#toldUs = options.nowUs;
  }

  get holders(): number {
    return this.#holders;
  }

  take(key: string, n: number, quota: RateQuota): StoreAnswer | Promise<StoreAnswer> {
    const nowUs = this.#context.clock.nowUs();
    const purse = this.#purseOf(key, quota, nowUs);
    if (purse.line.length === 0 && !purse.isAsking) {
      const answer = this.#answerHere(purse, n, nowUs);
      if (answer !== undefined) return answer;
    }
    return new Promise((resolve, reject) => {
      purse.line.push({ n, quota, resolve, reject });
      if (purse.isAsking) return;
      const asked = this.#askOn(purse);
      this.#asks.add(asked);
      void asked.then(() => this.#asks.delete(asked));
    });
  }

  refund(key: string, n: number, quota: RateQuota): void {
    const purse = this.#purses.get(this.#nameOf(key));
    if (purse !== undefined) purse.refusedUntilUs = NOT_AT_ALL;
    this.#giveBack(this.#idOf(key), n, quota, -1).catch(ignored);
  }

  async reset(key: string): Promise<void> {
    this.#purses.delete(this.#nameOf(key));
    await this.#connection.remove(this.#idOf(key));
  }

  async probe(): Promise<void> {
    await this.#giveBack(this.#idOf(PROBE_KEY), 0, { rate: 1, burst: 1 }, -1);
  }

  async close(): Promise<void> {
    const hadLeases = this.#leaseUs > 0;
    this.#leaseUs = 0;
    if (this.#returnTimer !== undefined) this.#context.timers.clearTimeout(this.#returnTimer);
    this.#returnTimer = undefined;
    if (!hadLeases) return;
    const returns = [...this.#purses.values()].flatMap((purse) =>
      purse.endsUs === NOT_AT_ALL ? [] : [this.#returnLease(purse)],
    );
    await Promise.all([...returns, ...this.#asks]); // an answer may bring a lease yet
  }

  // --- without asking

  #answerHere(purse: Purse, n: number, nowUs: number): StoreAnswer | undefined {
    if (purse.held >= n && nowUs < purse.endsUs) {
      purse.held -= n;
      return this.#answer(purse, 0, nowUs);
    }
    if (n >= purse.refusedN && staysRefused(purse, nowUs)) {
      return this.#answer(purse, purse.refusedUntilUs - nowUs, nowUs);
    }
    return undefined;
  }

  #answer(purse: Purse, waitUs: number, nowUs: number): StoreAnswer {
    return {
      granted: waitUs === 0,
      remaining: Math.max(0, purse.left + (nowUs < purse.endsUs ? purse.held : 0)),
      waitUs,
      fullInUs: Math.max(0, purse.fullAtUs - nowUs),
    };
  }

  /** What a key is held under here: very long ones by their hash, so that they are not kept. */
  #nameOf(key: string): string {
    return key.length > LONGEST_KEY ? this.#idOf(key) : key;
  }

  #idOf(key: string): string {
    return redisKey(this.#prefix, this.#context.name, key);
  }

  #purseOf(key: string, { rate, burst }: RateQuota, nowUs: number): Purse {
    const name = this.#nameOf(key);
    let purse = this.#purses.get(name);
    if (purse === undefined) {
      this.#tidy(nowUs);
      purse = {
        id: this.#idOf(key),
        held: 0,
        endsUs: NOT_AT_ALL,
        left: 0,
        fullAtUs: 0,
        refusedUntilUs: NOT_AT_ALL,
        askedUs: nowUs,
        refusedN: 0,
        rate,
        burst,
        isAsking: false,
        line: [],
      };
      this.#purses.set(name, purse);
    } else if (purse.rate !== rate || purse.burst !== burst) {
      purse.rate = rate;
      purse.burst = burst;
      purse.refusedUntilUs = NOT_AT_ALL; // what was refused at the old quota may fit the new one
    }
    return purse;
  }

  /** Lets go of purses that hold nothing, one after the other; of others only when there are far too many. */
  #tidy(nowUs: number): void {
    let looked = 0;
    for (const [key, purse] of this.#purses) {
      if (looked++ >= SWEEP) return;
      const isIdle = purse.endsUs <= nowUs && purse.held === 0 && !staysRefused(purse, nowUs);
      this.#purses.delete(key);
      if (purse.isAsking || (!isIdle && this.#purses.size < MOST_KEYS)) {
        this.#purses.set(key, purse); // to the end, or those behind it were never looked at
      } else if (purse.held > 0) this.#returnLease(purse).catch(ignored);
    }
  }

  // --- asking

  /** Asks for those in line until none is left. One call at a time for a key: the rest waits and goes together. */
  async #askOn(purse: Purse): Promise<void> {
    purse.isAsking = true;
    try {
      while (purse.isAsking) {
        const nowUs = this.#context.clock.nowUs();
        const first = purse.line[0] as Pending;
        const answer = this.#answerHere(purse, first.n, nowUs);
        if (answer === undefined) {
          if (!(await this.#askOnce(purse, first, nowUs))) break;
        } else {
          purse.line.shift();
          purse.isAsking = purse.line.length > 0;
          first.resolve(answer);
        }
      }
    } catch (error) {
      purse.isAsking = false;
      for (const { reject } of purse.line.splice(0)) reject(error);
    }
    // closed meanwhile: nobody needs what the answer brought
    if (this.#leaseUs === 0 && purse.endsUs !== NOT_AT_ALL)
      await this.#returnLease(purse).catch(ignored);
  }

  /** Asks for those at the head of the line that ask alike; true if others wait behind them. */
  async #askOnce(purse: Purse, first: Pending, sentUs: number): Promise<boolean> {
    const { n, quota } = first;
    let count = 1;
    while (count < MOST_PER_CALL && isAlike(purse.line[count], first)) count++;
    const isLive = sentUs < purse.endsUs;
    const held = isLive ? purse.held : 0;
    const leaseUs = this.#leaseUs;
    const back = purse.held - held;
    purse.held = held; // what is given back is not ours any more, however the call ends
    const reply = await this.#connection.take(purse.id, {
      ...quota,
      n,
      count,
      back,
      holder: this.#holder,
      leaseUs: leaseUs > 0 ? leaseUs : -1,
      held,
      nowUs: this.#toldUs?.(),
    });
    this.#learn(purse, reply, n, count, sentUs);
    // counted from when we asked, so that it ends here before it ends there
    if (leaseUs > 0) this.#leased(purse, reply, sentUs + leaseUs);
    const nowUs = this.#context.clock.nowUs();
    const served = purse.line.splice(0, count);
    // said before anyone is told: whoever comes next has to find it as it is
    const isMore = purse.line.length > 0;
    purse.isAsking = isMore;
    for (const [i, { resolve }] of served.entries()) {
      resolve(this.#answer(purse, i < reply.granted ? 0 : Math.max(1, reply.waitUs), nowUs));
    }
    return isMore;
  }

  #learn(purse: Purse, reply: TakeReply, n: number, count: number, sentUs: number): void {
    purse.askedUs = sentUs;
    purse.left = reply.tokens;
    purse.fullAtUs = sentUs + reply.fullInUs;
    const isRefused = reply.granted < count;
    const pauseUs = this.#pauseUs(purse, reply, isRefused);
    purse.refusedN = pauseUs > 0 ? 0 : n;
    purse.refusedUntilUs = isRefused ? sentUs + Math.max(reply.waitUs, pauseUs) : sentUs + pauseUs;
  }

  #leased(purse: Purse, { extra, holders }: TakeReply, endsUs: number): void {
    this.#holders = holders;
    purse.held += extra;
    purse.endsUs = endsUs;
    if (this.#leaseUs > 0) this.#armReturn();
  }

  /**
   * How long not to ask again, with or without tokens: a key that is used beyond its quota would be asked for at
   * every call. Half the time a batch takes to come in; nothing is lost by it, since it comes in meanwhile.
   */
  #pauseUs(purse: Purse, { tokens, holders }: TakeReply, isRefused: boolean): number {
    if (this.#leaseUs === 0 || purse.rate === 0) return 0;
    const { rate, burst } = purse;
    const batch = Math.min(burst / 10, (rate * this.#leaseUs) / 1e6) / holders;
    const isShort = isRefused || tokens < batch / 2;
    if (batch < LEAST_BATCH || !isShort) return 0;
    return Math.min(LONGEST_PAUSE_US, ((batch / 2) * holders * 1e6) / rate);
  }

  // --- leases that end

  #armReturn(): void {
    if (this.#returnTimer !== undefined) return;
    const ring = (): void => {
      this.#returnTimer = undefined;
      const nowUs = this.#context.clock.nowUs();
      let runs = false;
      for (const purse of this.#purses.values()) {
        if (purse.endsUs === NOT_AT_ALL) continue;
        if (nowUs < purse.endsUs) runs = true;
        else if (purse.isAsking) runs = true;
        else if (purse.held > 0) this.#returnLease(purse).catch(ignored);
        else purse.endsUs = NOT_AT_ALL; // it ends there by itself
      }
      if (runs) this.#armReturn();
    };
    this.#returnTimer = this.#context.timers.setTimeout(ring, this.#leaseUs / 1000);
  }

  async #returnLease(purse: Purse): Promise<void> {
    const { id, held, rate, burst } = purse;
    purse.held = 0;
    purse.endsUs = NOT_AT_ALL;
    await this.#giveBack(id, held, { rate, burst }, 0);
  }

  async #giveBack(id: string, n: number, quota: RateQuota, leaseUs: 0 | -1): Promise<void> {
    await this.#connection.take(id, {
      ...quota,
      n: 0,
      count: 0,
      back: n,
      holder: this.#holder,
      leaseUs,
      held: 0,
      nowUs: this.#toldUs?.(),
    });
  }
}

/** True while the store need not be asked again to refuse. */
function staysRefused({ refusedUntilUs, askedUs }: Purse, nowUs: number): boolean {
  return nowUs < refusedUntilUs && nowUs < askedUs + LONGEST_REFUSAL_US;
}

function isAlike(one: Pending | undefined, other: Pending): boolean {
  return one !== undefined && one.n === other.n && sameQuota(one.quota, other.quota);
}

function sameQuota(one: RateQuota, other: RateQuota): boolean {
  return one.rate === other.rate && one.burst === other.burst;
}

function ignored(): void {}
