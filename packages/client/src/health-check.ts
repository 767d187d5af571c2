import http from 'node:http';
import https from 'node:https';
import { connect } from 'node:net';
import type { TimerHandle, Timers } from '@elimit/core';
import type { TlsOptions } from './agent.js';

/** Asks an endpoint whether it is there. Resolves to true if so; its signal ends with the check's own time. */
export type Probe = (target: ProbeTarget, signal: AbortSignal) => Promise<boolean>;

/** What a probe is to ask. */
export interface ProbeTarget {
  /** The endpoint's origin. */
  readonly url: URL;
  /** Sent as `Host`, if it is not the URL's own. */
  readonly host: string | undefined;
  /** A path that must answer 2xx; without one a TCP connection is enough. */
  readonly path: string | undefined;
  /** For https: what `tls.connect` takes. */
  readonly tls: TlsOptions;
}

/** The built-in probe: TCP connect, then `GET path` if there is one. Redirects are not followed: only 2xx counts. */
export const probeBySocket: Probe = async (target, signal) => {
  if (!(await connects(target.url, signal))) return false;
  return target.path === undefined || answers(target, target.path, signal);
};

function connects(url: URL, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: bare(url.hostname), port: portOf(url) });
    const end = (up: boolean) => {
      signal.removeEventListener('abort', abort);
      socket.destroy();
      resolve(up);
    };
    const abort = () => end(false);
    socket.unref();
    socket.once('connect', () => end(true));
    // stays for errors that come after the end
    socket.on('error', () => end(false));
    signal.addEventListener('abort', abort);
  });
}

function answers(target: ProbeTarget, path: string, signal: AbortSignal): Promise<boolean> {
  const { url, host, tls } = target;
  return new Promise((resolve) => {
    const request = (url.protocol === 'https:' ? https : http).request({
      ...tls,
      host: bare(url.hostname),
      port: portOf(url),
      path,
      agent: false,
      signal,
      headers: host === undefined ? {} : { host },
    });
    request.once('socket', (socket) => socket.unref());
    request.on('error', () => resolve(false));
    request.once('response', (response) => {
      const { statusCode = 0 } = response;
      response.on('error', () => {});
      request.destroy(); // the body says nothing
      resolve(statusCode >= 200 && statusCode < 300);
    });
    request.end();
  });
}

/** The port of a URL, the scheme's own if it has none. */
function portOf(url: URL): number {
  if (url.port !== '') return Number(url.port);
  return url.protocol === 'https:' ? 443 : 80;
}

/** A host name as sockets want it: IPv6 without brackets. */
function bare(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, '');
}

export interface HealthCheckRun {
  readonly intervalMs: number;
  readonly timeoutMs: number;
  readonly probe: (signal: AbortSignal) => Promise<boolean>;
  readonly timers: Timers;
  /** Called once, after the first probe that succeeded; the run is over then. */
  readonly passed: () => void;
}

/**
 * Probes until one succeeds: now, then every `intervalMs` from the start of the last one. Each has its own
 * time, no more than the interval, so two never overlap.
 *
 * @returns ends the run: nothing is called afterwards
 */
export function startHealthCheck(run: HealthCheckRun): () => void {
  const { intervalMs, probe, timers, passed } = run;
  const timeoutMs = Math.min(run.timeoutMs, intervalMs);
  let stopped = false;
  let next: TimerHandle;
  let deadline: TimerHandle;
  let control: AbortController;

  function stop(): void {
    stopped = true;
    timers.clearTimeout(next);
    timers.clearTimeout(deadline);
    control.abort();
  }

  function start(): void {
    const current = new AbortController();
    control = current;
    // before the next start, should both fall due at once
    deadline = timers.setTimeout(() => current.abort(), timeoutMs);
    next = timers.setTimeout(start, intervalMs);
    void ask(current.signal);
  }

  async function ask(signal: AbortSignal): Promise<void> {
    const isUp = await settled(probe, signal);
    if (stopped || signal.aborted) return; // a probe that answers after its time has failed
    timers.clearTimeout(deadline);
    if (!isUp) return;
    stop();
    passed();
  }

  start();
  return stop;
}

async function settled(probe: HealthCheckRun['probe'], signal: AbortSignal): Promise<boolean> {
  try {
    return await probe(signal);
  } catch {
    return false;
  }
}
