import { expect, it } from '@jest/globals';
import { answer, fail, virtualChannel } from '../support/virtual-channel.js';

/** What an async callback returns that will reject, and how many of them were handled: another one ends the process. */
function rejecting() {
  const seen = { called: 0, handled: 0 };
  const callback = (): undefined => {
    seen.called++;
    return {
      // oxlint-disable-next-line unicorn/no-thenable -- it stands for a promise
      then(_: unknown, onRejected?: (reason: unknown) => void) {
        if (onRejected === undefined) return;
        seen.handled++;
        onRejected(new Error('a listener’s own fault'));
      },
    } as unknown as undefined;
  };
  return { seen, callback };
}

it('an async onEvent may reject: of an endpoint that is isolated', async () => {
  const { seen, callback } = rejecting();
  const { call, nodes, state } = virtualChannel('ab', { onEvent: callback });
  nodes.a = fail('ECONNREFUSED', { syscall: 'connect' });
  expect(await call()).toBe('b');
  expect(state('a')).toBe('open');
  expect(seen).toEqual({ called: 1, handled: 1 });
});

it('an async discard may reject: a locked body cannot be cancelled', async () => {
  const { seen, callback } = rejecting();
  const { call, nodes } = virtualChannel('ab');
  nodes.a = answer(503);
  expect(await call({ method: 'GET', discard: callback })).toBe('b');
  expect(seen).toEqual({ called: 1, handled: 1 });
});
