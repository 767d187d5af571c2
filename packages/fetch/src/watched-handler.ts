import { isOfDecoder } from '@elimit/client';
import type { Dispatcher } from 'undici';

type Controller = Dispatcher.DispatchController;

/** Ends a request. */
export type Abort = (reason: Error) => void;

/** Who hears of a request besides its handler. */
export interface RequestWatch {
  /** It is on a connection. */
  connected(abort: Abort): void;
  /** The status of its answer has come. */
  answered(status: number): void;
  /** Its answer began, and did not come to its end; not for want of the handler's interest. */
  brokeOff(error: unknown): void;
}

/**
 * The same handler, watched. A proxy, since handlers are of two kinds and the methods of both change with undici's
 * versions.
 */
export function watchedHandler(
  handler: Dispatcher.DispatchHandler,
  watch: RequestWatch,
): Dispatcher.DispatchHandler {
  let hasAnswer = false;
  let isLetGo = false;
  let raw: Controller | undefined;
  let controller: Controller | undefined;
  const lettingGo = (abort: Abort): Abort => {
    return (reason) => {
      // what cannot be decoded ends the request in the same way
      if (isOfDecoder(reason)) failed(reason);
      isLetGo = true;
      abort(reason);
    };
  };
  const answered = (status: unknown): void => {
    hasAnswer ||= (status as number) >= 200;
    watch.answered(status as number);
  };
  const failed = (error: unknown): void => {
    if (hasAnswer && !isLetGo) watch.brokeOff(error);
  };
  /** Before the handler's own methods: these let go of what has failed already. */
  const before: Readonly<Record<string, (args: readonly unknown[]) => void>> = {
    onHeaders: ([status]) => answered(status),
    onResponseStart: ([, status]) => answered(status),
    onError: ([error]) => failed(error),
    onResponseError: ([, error]) => failed(error),
  };
  return new Proxy(handler, {
    get(target, key) {
      const method = Reflect.get(target, key) as unknown;
      if (typeof method !== 'function') return method;
      return (...args: unknown[]): unknown => {
        if (typeof key === 'string') before[key]?.(args);
        const [first, ...others] = args;
        if (!isController(first)) {
          if (key !== 'onConnect') return Reflect.apply(method, target, args) as unknown;
          const abort = first as Abort;
          const given = Reflect.apply(method, target, [lettingGo(abort), ...others]) as unknown;
          watch.connected(abort);
          return given;
        }
        const abort: Abort = (reason) => first.abort(reason);
        // a request that undici starts again has a new one
        if (first !== raw) controller = withAbort(first, lettingGo(abort));
        raw = first;
        const given = Reflect.apply(method, target, [controller, ...others]) as unknown;
        if (key === 'onRequestStart') watch.connected(abort);
        return given;
      };
    },
  });
}

function isController(value: unknown): value is Controller {
  return typeof (value as Partial<Controller> | null | undefined)?.abort === 'function';
}

/** The same controller with another `abort`; a proxy, as controllers keep things in private fields. */
function withAbort(controller: Controller, abort: Abort): Controller {
  return new Proxy(controller, {
    get(target, key) {
      if (key === 'abort') return abort;
      const value = Reflect.get(target, key) as unknown;
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
    set: (target, key, value) => Reflect.set(target, key, value),
  });
}
