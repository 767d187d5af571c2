export { freePort } from './free-port.js';
export { KeyWatch } from './key-watch.js';
export { liveHeap } from './live-heap.js';
export { RedisServer } from './redis-server.js';
export { seededRandom } from './seeded-random.js';
export { type Question, type Sample, SpyLimiter } from './spy-limiter.js';
export {
  type ClientAdapterHarness,
  type ClientAdapterSubject,
  clientAdapterCases,
  type SuiteClientAnswer,
  type SuiteClientRequest,
} from './suites/client-adapter.js';
export {
  closedPort,
  hang,
  ok,
  refuse,
  reset,
  resetMidBody,
  type SeenRequest,
  type SilentHost,
  startSilentHost,
  startTestServer,
  status,
  type TestServer,
} from './suites/client-adapter-servers.js';
export { type GuardSubject, guardSuite } from './suites/guard.js';
export { type LimiterSubject, limiterSuite } from './suites/limiter.js';
export { type RateStoreSubject, rateStoreSuite } from './suites/rate-store.js';
export { eventually, RawClient } from './suites/raw-client.js';
export { serverAdapterCases } from './suites/server-adapter.js';
export {
  type ServerAdapterHarness,
  type SuiteApp,
  type SuiteCase,
  type SuiteHandler,
  type SuiteLimit,
  type SuiteLimitOptions,
  type SuiteServer,
  suiteServer,
} from './suites/server-adapter-harness.js';
export { testCertificate } from './suites/test-certificate.js';
export { type StoreHealth, TestRateStore } from './test-rate-store.js';
export { runVectorFiles, type VectorRun } from './vectors/run-vector-files.js';
export { Difference, same, type VectorKind, VectorRecord } from './vectors/vector-file.js';
export { settle, VirtualClock } from './virtual-clock.js';
