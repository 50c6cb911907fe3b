/** The peer: durable workflows on PostgreSQL, installed beside the project at first use. */
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { peerPackages } from './peer-packages.ts'

const PACKAGE = '@dbos-inc/dbos-sdk'

interface Dbos {
  setConfig(config: object): void
  launch(): Promise<void>
  shutdown(): Promise<void>
  registerWorkflow<T>(workflow: () => Promise<T>, options: { name: string }): () => Promise<T>
  startWorkflow<T>(workflow: () => Promise<T>): () => Promise<{ getResult(): Promise<T> }>
  runStep<T>(step: () => Promise<T>, options: { name: string }): Promise<T>
}

export interface Workflows {
  /** Runs one, and ends with it. */
  run(): Promise<void>
  close(): Promise<void>
}

/** A workflow of so many steps, each of which does nothing and whose result is kept. */
export async function startDbos(url: string, steps: number): Promise<Workflows> {
  const main = join(peerPackages('kernel', [PACKAGE]), PACKAGE, 'dist/src/index.js')
  const { DBOS } = (await import(pathToFileURL(main).href)) as { DBOS: Dbos }
  const systemDatabaseUrl = new URL(url)
  systemDatabaseUrl.pathname = '/dbos'
  DBOS.setConfig({ name: 'bench', systemDatabaseUrl: systemDatabaseUrl.href, logLevel: 'error' })
  const workflow = DBOS.registerWorkflow(
    async () => {
      let last = { step: 0 }
      for (let step = 1; step <= steps; step++) {
        last = await DBOS.runStep(async () => ({ step }), { name: `step ${step}` })
      }
      return last
    },
    { name: 'five steps' },
  )
  await DBOS.launch()
  const start = DBOS.startWorkflow(workflow)
  return {
    run: async () => {
      const { step } = await (await start()).getResult()
      if (step !== steps) throw new Error(`the workflow ended after ${step} steps`)
    },
    close: () => DBOS.shutdown(),
  }
}
