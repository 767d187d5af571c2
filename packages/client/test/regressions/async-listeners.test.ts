import { expect, it, jest } from '@jest/globals';
import { answer, fail, virtualChannel } from '../support/virtual-channel.js';

/** An async callback: each promise that it returned, by whether its rejection would be handled. An unhandled one ends the process. */
function asyncCallback() {
  const thens: { mock: { calls: unknown[][] } }[] = [];
  const callback = (): Promise<void> => {
    const promise = new Promise<void>(() => {});
    thens.push(jest.spyOn(promise, 'then'));
    return promise;
  };
  const handled = (): boolean[] =>
    thens.map(({ mock }) => mock.calls.some(([, onRejected]) => typeof onRejected === 'function'));
  return { callback: callback as () => void, handled };
}

it('an async onEvent may reject: of an endpoint that is isolated', async () => {
  const { callback, handled } = asyncCallback();
  const { call, nodes, state } = virtualChannel('ab', { onEvent: callback });
  nodes.a = fail('ECONNREFUSED', { syscall: 'connect' });
  expect(await call()).toBe('b');
  expect(state('a')).toBe('open');
  expect(handled()).toEqual([true]);
});

it('an async discard may reject: a locked body cannot be cancelled', async () => {
  const { callback, handled } = asyncCallback();
  const { call, nodes } = virtualChannel('ab');
  nodes.a = answer(503);
  expect(await call({ method: 'GET', discard: callback })).toBe('b');
  expect(handled()).toEqual([true]);
});
