// opossum ships no types; these are the parts used here
declare module 'opossum' {
  export default class CircuitBreaker<Args extends unknown[], T> {
    constructor(
      action: (...args: Args) => Promise<T>,
      options?: {
        timeout?: number | false;
        errorThresholdPercentage?: number;
        resetTimeout?: number;
        rollingCountTimeout?: number;
        volumeThreshold?: number;
      },
    );
    fire(...args: Args): Promise<T>;
    on(event: 'open' | 'halfOpen' | 'close' | 'reject', listener: () => void): this;
    shutdown(): void;
  }
}
