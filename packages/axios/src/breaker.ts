import {
  type Attempt,
  type Channel,
  type ChannelTarget,
  channelOf,
  watchedDownload,
} from '@elimit/client';
import { show } from '@elimit/core';
import axios, {
  type AxiosAdapter,
  type AxiosInstance,
  type AxiosResponse,
  type InternalAxiosRequestConfig,
  isAxiosError,
} from 'axios';
import {
  isReadOnce,
  isStream,
  isWebStream,
  watchAnswer,
  watchedData,
  watchUpload,
} from './bodies.js';
import { callerOf, isCancelled } from './caller.js';
import { BrokenAnswer, brokeOff, errorFor } from './errors.js';
import { checkBaseUrl, type Target, targetOf } from './target.js';
import { configOfTry } from './try-config.js';

const BRAND: unique symbol = Symbol.for('@elimit/axios/breaker') as never;
const DAY_MS = 86_400_000;

/**
 * Sends the calls of an axios instance through a channel, and gives the same instance back. Interceptors run once
 * for each call, however many tries it takes; errors are AxiosErrors with `code`, `brpcCode`, `status` and `cause`.
 *
 * Relative URLs go to the channel's nodes. Absolute ones go where they say, guarded by their origin, and so do all
 * of a channel without nodes. A request with an `adapter` of its own bypasses the channel.
 *
 * @param target - a channel, or options to make one. @default each origin is guarded for itself
 * @throws TypeError for what is no axios instance, for the global axios, an instance that has a breaker already, or an absolute `baseURL` beside nodes
 */
export function breaker(instance: AxiosInstance, target?: ChannelTarget): AxiosInstance {
  if ((instance as Partial<AxiosInstance> | undefined)?.defaults === undefined) {
    throw new TypeError(`breaker(instance): it must be an axios instance, got ${show(instance)}`);
  }
  if ('AxiosError' in instance) {
    throw new TypeError(
      'breaker(axios): the global axios belongs to every package of the process; give it axios.create()',
    );
  }
  const { adapter, baseURL } = instance.defaults;
  if (typeof adapter === 'function' && BRAND in adapter) {
    throw new TypeError('breaker(instance): this instance has a breaker already');
  }
  const channel = channelOf(target);
  checkBaseUrl(channel, baseURL);
  const send = axios.getAdapter(adapter);
  const throughChannel: AxiosAdapter = (config) => call(channel, send, config);
  instance.defaults.adapter = Object.assign(throughChannel, { [BRAND]: true });
  return instance;
}

async function call(
  channel: Channel,
  send: AxiosAdapter,
  config: InternalAxiosRequestConfig,
): Promise<AxiosResponse> {
  const target = targetOf(channel, config);
  if (target === undefined) return send(config);
  const caller = callerOf(config);
  try {
    const response = await channel.execute((attempt) => trySend(attempt, send, config, target), {
      ...rulesOf(config),
      signal: caller.signal,
      origin: target.origin,
      errorCost: true,
      discard: (ended) => {
        letGo(ended.ok ? ended.value : (ended.error as { response?: AxiosResponse }).response);
      },
    });
    response.config = config;
    return response;
  } catch (error) {
    throw errorFor(error, config, caller.signal);
  } finally {
    caller.leave();
  }
}

async function trySend(
  attempt: Attempt,
  send: AxiosAdapter,
  config: InternalAxiosRequestConfig,
  target: Target,
): Promise<AxiosResponse> {
  const forget = watchUpload(attempt, config);
  const { config: own, end, unlink } = configOfTry(attempt, config, target);
  own.data = watchedData(attempt, own.data);
  const closed = (): void => {
    forget();
    unlink();
  };
  let isStreaming = false;
  try {
    const response = await send(own);
    const { data } = response as { data: unknown };
    const broken = (error: unknown): void => {
      if (!isCancelled(own)) attempt.brokeOff(error);
    };
    if (isStream(data)) {
      isStreaming = true;
      watchAnswer(response, data, { broken, closed });
    } else if (isWebStream(data)) {
      isStreaming = true;
      // axios's own stream, if it is cancelled while it waits for a chunk, lets go of the connection with the next one only
      response.data = watchedDownload(data, { broken, cancelled: end, closed });
    }
    return response;
  } catch (error) {
    throw isAxiosError(error) && brokeOff(error) ? new BrokenAnswer(error) : error;
  } finally {
    if (!isStreaming) closed();
  }
}

/** What the caller says about the call, in the channel's words. */
function rulesOf(config: InternalAxiosRequestConfig) {
  const { method, data, timeout, resend, maxRetries, carriedTimeoutMs } =
    config as InternalAxiosRequestConfig<unknown>;
  const ownMs = Number.parseInt(String(timeout ?? 0), 10); // axios reads texts, too
  return {
    method,
    resend,
    maxRetries,
    carriedTimeoutMs,
    breaker: config.breaker,
    replayable: !isReadOnce(data),
    timeoutMs: ownMs > 0 ? Math.min(ownMs, DAY_MS) : undefined,
  };
}

/** Ends the body of an answer that nobody will see. */
function letGo(response: AxiosResponse | undefined): void {
  const data: unknown = response?.data;
  if (isStream(data)) data.destroy();
  else if (isWebStream(data)) data.cancel().catch(() => {});
}
