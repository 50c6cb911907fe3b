import type { TestProject } from 'vitest/node'
import { startPostgres } from './postgres-server.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** A real PostgreSQL for the whole run; empty when npm has none for this machine. */
    postgresUrl: string
  }
}

/** Nothing of a test run has to survive the machine. */
const SETTINGS = ['fsync=off', 'full_page_writes=off', 'synchronous_commit=off']

/** One PostgreSQL for the whole run, which tests ask for with `inject('postgresUrl')`. */
export default async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  const server = await startPostgres(SETTINGS)
  if (!server)
    console.warn(`npm has no PostgreSQL for ${process.platform}-${process.arch}: tests on PostgreSQL are skipped`)
  project.provide('postgresUrl', server?.url ?? '')
  return server?.stop
}
