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
export { breaker } from './breaker.js';
export type { BreakerAxiosError } from './errors.js';
export type { BreakerRequestConfig } from './request-config.js';
