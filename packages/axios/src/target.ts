import type { Channel } from '@elimit/client';
import { AxiosError, type InternalAxiosRequestConfig } from 'axios';

/** Where a call goes. */
export interface Target {
  /** Where an absolute URL leads; `undefined` for a call to the nodes. */
  readonly origin: string | undefined;
  /** For a call to the nodes: path and query, from the slash on. */
  readonly path: string;
}

/** As axios tells: a scheme, or none, and two slashes. */
function isAbsolute(url: string): boolean {
  return /^([a-z][a-z\d+\-.]*:)?\/\//i.test(url);
}

/** @throws TypeError if a channel with nodes is to be used beside an absolute base URL */
export function checkBaseUrl({ name, hasNodes }: Channel, baseURL: string | undefined): void {
  if (hasNodes && baseURL !== undefined && isAbsolute(baseURL)) {
    throw new TypeError(
      `baseURL ${JSON.stringify(baseURL)} names a host, and so do the nodes of channel ${name}: keep the path alone`,
    );
  }
}

/** The target of a call; `undefined` for one that needs no connection of ours. */
export function targetOf(channel: Channel, config: InternalAxiosRequestConfig): Target | undefined {
  const { url = '', baseURL, allowAbsoluteUrls, socketPath } = config;
  if (/^data:/i.test(url) || typeof socketPath === 'string') return undefined;
  const isForeign = isAbsolute(url) && (baseURL === undefined || allowAbsoluteUrls !== false);
  if (isForeign) return { origin: originIn(url, config), path: '' };
  const full = combined(baseURL ?? '', url);
  if (!channel.hasNodes) return { origin: originIn(full, config), path: '' };
  try {
    checkBaseUrl(channel, baseURL);
  } catch (error) {
    throw AxiosError.from(error, AxiosError.ERR_BAD_OPTION_VALUE, config);
  }
  return { origin: undefined, path: `/${full.replace(/^\/+/, '')}` };
}

/** As axios combines them. */
function combined(baseURL: string, url: string): string {
  if (baseURL === '' || url === '') return baseURL + url;
  return `${baseURL.replace(/\/+$/, '')}/${url.replace(/^\/+/, '')}`;
}

function originIn(url: string, config: InternalAxiosRequestConfig): string {
  try {
    const { protocol, origin } = new URL(url);
    if (protocol === 'http:' || protocol === 'https:') return origin;
  } catch {
    // told below
  }
  throw new AxiosError(
    `Invalid URL ${JSON.stringify(url)}: without nodes it needs http:// or https:// and a host`,
    'ERR_INVALID_URL',
    config,
  );
}
