import { rateStoreSuite, TestRateStore, VirtualClock } from '@elimit/testkit';
import { describe, it } from '@jest/globals';

describe('the store for tests', () => {
  const store = new TestRateStore();
  const clock = new VirtualClock();
  rateStoreSuite(it, {
    open: (name) => store.open({ name, clock, timers: clock, random: () => 0.5 }),
    except: {
      'follows a change of quota': 'its buckets keep the quota that they were made with',
    },
  });
});
