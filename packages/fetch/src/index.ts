// what users of the adapter need from below, so that one import serves
export {
  type Channel,
  type ChannelOptions,
  type ChannelTarget,
  ConnectTimeoutError,
  createChannel,
  dnsNaming,
  fileNaming,
  NoEndpointError,
  TimeoutError,
} from '@elimit/client';
export { createFetch, type Fetch } from './create-fetch.js';
export type { FetchInit } from './fetch-request.js';
export { elimitInterceptor, type InterceptorOptions } from './interceptor.js';
