import { Child, SERVER_CORE } from '../http/child.js';
import type { ServiceCounts, ServiceOptions, ServiceOrder } from './service.js';

/** Services in processes of their own. */
export class Fleet {
  readonly urls: readonly string[];
  readonly #children: readonly Child[];

  private constructor(children: readonly Child[], urls: readonly string[]) {
    this.#children = children;
    this.urls = urls;
  }

  static async start(services: readonly ServiceOptions[]): Promise<Fleet> {
    const children = services.map(
      (options) =>
        new Child(new URL('./service.ts', import.meta.url), [JSON.stringify(options)], SERVER_CORE),
    );
    try {
      const ports = await Promise.all(children.map((child) => child.ask<{ port: number }>()));
      return new Fleet(
        children,
        ports.map(({ port }) => `http://127.0.0.1:${port}`),
      );
    } catch (error) {
      await Promise.all(children.map((child) => child.close()));
      throw error;
    }
  }

  /** Tells every service, and gives their counts. */
  order(order: ServiceOrder = {}): Promise<ServiceCounts[]> {
    return Promise.all(this.#children.map((child) => child.ask<ServiceCounts>(order)));
  }

  async stop(): Promise<void> {
    await Promise.all(this.#children.map((child) => child.close()));
  }
}

/** Starts services, and ends them whatever happens. */
export async function withFleet<T>(
  services: readonly ServiceOptions[],
  run: (fleet: Fleet) => Promise<T>,
): Promise<T> {
  const fleet = await Fleet.start(services);
  try {
    return await run(fleet);
  } finally {
    await fleet.stop();
  }
}
