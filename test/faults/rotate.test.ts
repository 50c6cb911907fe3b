import { once } from 'node:events'
import { expect, it } from 'vitest'
import { readKeyFile } from '../../src/platform/sealing/key-file.ts'
import { Sealer } from '../../src/platform/sealing/sealer.ts'
import { readSecrets, sealSecrets } from '../platform/secrets.ts'
import { createPlace, initialize, type Place } from '../platform/support.ts'
import { runProgram, spawnProgram } from '../support/program.ts'
import { describeOnBothDatabases, ROUNDS } from './place.ts'

const SECRETS = 4000
const ROTATE = ['platform', 'keys', 'rotate']

/** Kills a rotation when it has sealed some secrets with the new key, and others not yet. */
async function rotateAndKill(place: Place, sealer: Sealer): Promise<void> {
  const { current } = sealer.keys()
  const child = spawnProgram(ROTATE, { directory: place.directory, env: place.env })
  const ended = once(child, 'close')
  const database = place.open()
  const underOther = async (): Promise<number> =>
    (
      await database.get<{ n: number }>(`SELECT count(*) AS n FROM test_secrets WHERE secret NOT LIKE $1`, [
        `v1.${current}.%`,
      ])
    )?.n ?? 0
  while (child.exitCode === null && (await underOther()) === 0) await new Promise((next) => setImmediate(next))
  child.kill('SIGKILL')
  await ended
  await database.close()
}

/** Every secret opens, with the keys that the file holds now. */
async function expectAllOpen(place: Place): Promise<Set<string | undefined>> {
  const secrets = await readSecrets(place, new Sealer(place.config().platform.key_file, console))
  expect(secrets).toHaveLength(SECRETS)
  expect(secrets.filter(({ id, opened }) => opened !== `secret ${id}`)).toEqual([])
  return new Set(secrets.map(({ key }) => key))
}

describeOnBothDatabases('kill -9 during `platform keys rotate`', (dialect) => {
  const rounds = Math.ceil(ROUNDS / 7)
  it('loses no secret, and the next run ends what was begun', { timeout: 60_000 + rounds * 20_000 }, async () => {
    const place = await createPlace(dialect)
    await initialize(place)
    const sealer = new Sealer(place.config().platform.key_file, console)
    await sealSecrets(place, sealer, SECRETS)
    for (let round = 0; round < rounds; round++) {
      await rotateAndKill(place, sealer)
      await expectAllOpen(place)
      const again = await runProgram(ROTATE, { directory: place.directory, env: place.env })
      expect(again).toMatchObject({ code: 0 })
      const { current } = readKeyFile(sealer.path)
      expect(await expectAllOpen(place)).toEqual(new Set([current]))
    }
    const pruned = await runProgram([...ROTATE, '--prune'], { directory: place.directory, env: place.env })
    expect(pruned).toMatchObject({ code: 0 })
    expect(Object.keys(readKeyFile(sealer.path).keys)).toHaveLength(1)
    await expectAllOpen(place)
    await place.remove()
  })
})
