export { TimeoutError } from '@elimit/core';
export {
  type ChannelTarget,
  channelOf,
  type OutboundFacts,
  outboundFactsOf,
} from './adapter.js';
export { addressTimeoutMs, type ConnectOptions, connectInTime, type TlsOptions } from './agent.js';
export type { Attempt, AttemptEndpoint, TryFn } from './attempt.js';
export type { Balancer, Candidate } from './balancer/balancer.js';
export { BALANCER_NAMES, type BalancerName, type BalancerValue } from './balancer/create.js';
export { isOfDecoder, isWaitedFor } from './body-clues.js';
export type { CallOptions } from './call.js';
export { checkCallOptions } from './call-options.js';
export { type Channel, createChannel } from './channel.js';
export type { Connections } from './endpoint.js';
export {
  ChannelClosedError,
  ConnectTimeoutError,
  NoEndpointError,
  RecoveringError,
} from './errors.js';
export type { Probe, ProbeTarget } from './health-check.js';
export { type DnsNamingOptions, dnsNaming } from './naming/dns.js';
export { type FileNamingOptions, fileNaming } from './naming/file.js';
export { listNaming } from './naming/list.js';
export type { Naming, NamingListener, NodeOptions, NodeValue } from './naming/naming.js';
export {
  CHANNEL_DEFAULTS,
  type ChannelOptions,
  type HealthCheckOptions,
  TIMEOUT_HEADER,
} from './options.js';
export type { ResendRules } from './retry.js';
export type { RetryBudgetOptions } from './retry-budget.js';
export {
  type Classify,
  type ConnectFailure,
  classifyByDefault,
  type Ended,
  retryAfterMsOf,
  type Verdict,
  verdictOfError,
  verdictOfStatus,
} from './verdict.js';
export { type DownloadWatch, watchedDownload, watchedUpload } from './watched-body.js';
