import pg from 'pg'
import { NodeError } from '../../../errors.ts'
import type { NodeContext } from '../../../registry.ts'

export interface Session {
  rows(sql: string, params: readonly unknown[]): Promise<Record<string, unknown>[]>
  count(sql: string, params: readonly unknown[]): Promise<number>
}

/** Runs `work` in one transaction over a checked connection. @throws NodeError auth_failed, sql_error */
export async function withPostgres<T>(
  context: NodeContext,
  connectionString: string,
  work: (session: Session) => Promise<T>,
): Promise<T> {
  if (/sslmode=no-verify|uselibpqcompat/i.test(connectionString)) {
    throw new NodeError('config_invalid', 'certificates are always verified')
  }
  const client = await connect(context, connectionString)
  const query = async (sql: string, params: readonly unknown[]) => client.query(sql, [...params])
  try {
    await client.query('BEGIN')
    const result = await work({
      rows: async (sql, params) => (await query(sql, params)).rows,
      count: async (sql, params) => (await query(sql, params)).rowCount ?? 0,
    })
    await client.query('COMMIT')
    return result
  } catch (error) {
    throw sqlError(error)
  } finally {
    // what is not committed is undone with the connection
    await client.end().catch(() => undefined)
  }
}

async function connect(context: NodeContext, connectionString: string): Promise<pg.Client> {
  const { host, port } = target(connectionString)
  const socket = await context.connect(host, port)
  const client = new pg.Client({
    connectionString,
    // the driver asks its stream to connect; this one is connected already
    stream: () =>
      Object.assign(socket, {
        connect: () => {
          process.nextTick(() => socket.emit('connect'))
          return socket
        },
      }),
  })
  client.on('error', () => undefined)
  try {
    await client.connect()
    return client
  } catch (error) {
    socket.destroy()
    context.signal.throwIfAborted()
    throw sqlError(error)
  }
}

function target(connectionString: string): { host: string; port: number } {
  try {
    const { host, port } = new pg.Client({ connectionString })
    if (!host.startsWith('/')) return { host, port }
  } catch {
    // told below
  }
  throw new NodeError('config_invalid', '"connectionString" is no URL of a PostgreSQL server')
}

/** Only the SQLSTATE: messages of the server hold values. */
function sqlError(error: unknown): unknown {
  if (!(error instanceof Error) || error instanceof NodeError) return error
  const sqlState = 'code' in error && typeof error.code === 'string' ? error.code : undefined
  if (!(error instanceof pg.DatabaseError) || sqlState === undefined) {
    return new NodeError(
      'network_error',
      `the connection to PostgreSQL failed${sqlState === undefined ? '' : `: ${sqlState}`}`,
    )
  }
  if (sqlState.startsWith('28')) return new NodeError('auth_failed', `PostgreSQL refuses the login (${sqlState})`)
  return new NodeError('sql_error', `PostgreSQL refuses with SQLSTATE ${sqlState}`, { sqlState })
}
