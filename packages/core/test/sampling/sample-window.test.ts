import { describe, expect, it } from '@jest/globals';
import { SampleWindow } from '../../src/sampling/sample-window.js';

const rules = { windowUs: 1000, minCount: 2, maxCount: 4 };

describe('the gate', () => {
  it('takes the first sample, then one per interval', () => {
    const window = new SampleWindow();
    const passed = [0, 99, 100, 150, 199, 200].filter((us) => window.pass(us, 100));
    expect(passed).toEqual([0, 100, 200]);
    expect(window.lastUs).toBe(200);
  });

  it('takes everything when the interval is 0', () => {
    const window = new SampleWindow();
    expect([5, 5, 5].map((us) => window.pass(us, 0))).toEqual([true, true, true]);
  });
});

describe('the window', () => {
  it.each<{ it: string; samples: number; atUs: number; state: string }>([
    { it: 'stays open while it is young', samples: 3, atUs: 999, state: 'open' },
    { it: 'is short when too few came in its time', samples: 1, atUs: 1000, state: 'short' },
    { it: 'waits for more while too few came', samples: 1, atUs: 999, state: 'open' },
    { it: 'is full when its time is over', samples: 2, atUs: 1000, state: 'full' },
    { it: 'is full when enough came, however young', samples: 4, atUs: 0, state: 'full' },
  ])('$it', ({ samples, atUs, state }) => {
    const window = new SampleWindow();
    window.open(0);
    for (let i = 0; i < samples; i++) window.addSuccess(10);
    expect(window.state(atUs, rules)).toBe(state);
  });

  it('counts failures as samples, and keeps their time apart', () => {
    const window = new SampleWindow();
    window.open(5);
    window.addSuccess(10);
    window.addFailure(30);
    expect(window).toMatchObject({ successes: 1, failures: 1, successUs: 10, failureUs: 30 });
    expect(window.state(1004, rules)).toBe('open');
    expect(window.state(1005, rules)).toBe('full');
    window.open(1005);
    expect(window).toMatchObject({
      successes: 0,
      failures: 0,
      successUs: 0,
      failureUs: 0,
      startUs: 1005,
    });
  });
});
