import {
  Bucket,
  type RateQuota,
  type RateStore,
  type RateStoreContext,
  RateStoreError,
  type RateStoreSession,
  type StoreAnswer,
  TokenBucketLaw,
} from '@elimit/core';

/** How a {@link TestRateStore} behaves: `refuse` says no with an error, `hang` says nothing until it is `up` again. */
export type StoreHealth = 'up' | 'refuse' | 'hang';

/** A shared store in memory, one round trip per call, whose failures are made by hand. For tests of limiters. */
export class TestRateStore implements RateStore {
  /** Calls of `take` that reached it. */
  takes = 0;
  /** Keys that answer with an error of their own. */
  readonly oddKeys = new Set<string>();
  /** How many processes it says there are. */
  holders = 1;
  #health: StoreHealth = 'up';
  readonly #buckets = new Map<string, Bucket>();
  #hanging: (() => void)[] = [];

  get health(): StoreHealth {
    return this.#health;
  }

  set health(health: StoreHealth) {
    this.#health = health;
    if (health !== 'up') return;
    const waiting = this.#hanging;
    this.#hanging = [];
    for (const go of waiting) go();
  }

  /** The tokens it holds for a limiter's key. */
  tokens(name: string, key: string, nowUs: number): number | undefined {
    return this.#buckets.get(`${name}:${key}`)?.tokens(nowUs);
  }

  open({ name, clock }: RateStoreContext): RateStoreSession {
    const bucketOf = (key: string, { rate, burst }: RateQuota): Bucket => {
      const id = `${name}:${key}`;
      const bucket =
        this.#buckets.get(id) ?? new Bucket(new TokenBucketLaw(rate, burst), clock.nowUs());
      this.#buckets.set(id, bucket);
      return bucket;
    };
    const holders = (): number => this.holders;
    return {
      take: async (key, n, quota) => {
        this.takes += 1;
        if (this.oddKeys.has(key)) throw new RateStoreError('something else lives here', 'key');
        await this.#answer();
        const bucket = bucketOf(key, quota);
        return answerOf(bucket, bucket.take(n, clock.nowUs()), clock.nowUs());
      },
      refund: (key, n, quota) => bucketOf(key, quota).refund(n, clock.nowUs()),
      reset: async (key) => {
        await this.#answer();
        this.#buckets.delete(`${name}:${key}`);
      },
      probe: () => this.#answer(),
      get holders() {
        return holders();
      },
      close: () => Promise.resolve(),
    };
  }

  async #answer(): Promise<void> {
    if (this.#health === 'refuse') throw new RateStoreError('refused', 'store');
    if (this.#health === 'hang') await new Promise<void>((go) => this.#hanging.push(go));
  }
}

function answerOf(bucket: Bucket, waitUs: number, nowUs: number): StoreAnswer {
  return {
    granted: waitUs === 0,
    remaining: Math.max(0, bucket.tokens(nowUs)),
    waitUs,
    fullInUs: Math.max(0, bucket.paidAtUs() - nowUs),
  };
}
