import { toTimestamp } from '../../base/clock.ts'
import { inList, type Queryable } from '../../database/database.ts'
import type { VersionOp, WatermarkEntry } from '../model.ts'
import type { Page } from '../../base/pages.ts'
import { toPage } from '../../base/pages.ts'
import { optional } from './rows.ts'

export interface VersionRow {
  watermark: string
  memory_id: string
  /** From 1, without gaps. */
  version_no: number
  op: VersionOp
  agent_id: string
  content_md5_before: string | null
  content_md5_after: string
  content: string
  /** The tags it ended with, JSON; null for the head. */
  tags: string | null
  created_at: number
  superseded_at: number | null
}

export function findVersion(db: Queryable, memoryId: string, watermark: string): Promise<VersionRow | undefined> {
  return db.get<VersionRow>('SELECT * FROM memory_version WHERE watermark = $1 AND memory_id = $2', [
    watermark,
    memoryId,
  ])
}

/** Bodies by watermark. */
export async function findContents(db: Queryable, watermarks: readonly string[]): Promise<Map<string, string>> {
  const rows = await db.all<{ watermark: string; content: string }>(
    `SELECT watermark, content FROM memory_version WHERE watermark IN ${inList(db, '$1')}`,
    [JSON.stringify(watermarks)],
  )
  return new Map(rows.map((row) => [row.watermark, row.content]))
}

/** Newest first, none created before `since` (ms); `before` is the number of the last one shown. */
export async function listVersions(
  db: Queryable,
  memoryId: string,
  since: number,
  limit: number,
  before: number | undefined,
): Promise<Page<WatermarkEntry>> {
  const rows = await db.all<Omit<VersionRow, 'content'>>(
    `SELECT watermark, memory_id, version_no, op, agent_id, content_md5_before, content_md5_after, created_at
       FROM memory_version WHERE memory_id = $1 AND created_at >= $2 AND version_no < $3
      ORDER BY version_no DESC LIMIT $4`,
    [memoryId, since, before ?? Number.MAX_SAFE_INTEGER, limit + 1],
  )
  return toPage(
    rows,
    limit,
    (row) => [row.version_no],
    (row) => ({
      target_id: row.memory_id,
      watermark: row.watermark,
      op: row.op,
      agent_id: row.agent_id,
      created_at: toTimestamp(row.created_at),
      ...optional('content_md5_before', row.content_md5_before),
      content_md5_after: row.content_md5_after,
    }),
  )
}

export async function insertVersion(tx: Queryable, version: Omit<VersionRow, 'tags' | 'superseded_at'>): Promise<void> {
  await tx.run(
    `INSERT INTO memory_version (watermark, memory_id, version_no, op, agent_id, content_md5_before, content_md5_after,
       content, created_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
    [
      version.watermark,
      version.memory_id,
      version.version_no,
      version.op,
      version.agent_id,
      version.content_md5_before,
      version.content_md5_after,
      version.content,
      version.created_at,
    ],
  )
}

/** Freezes a version that another one replaces, with the tags it ended with. */
export async function supersedeVersion(tx: Queryable, watermark: string, tags: string, now: number): Promise<void> {
  await tx.run('UPDATE memory_version SET tags = $2, superseded_at = $3 WHERE watermark = $1', [watermark, tags, now])
}

export async function deleteVersions(tx: Queryable, memoryId: string): Promise<void> {
  await tx.run('DELETE FROM memory_version WHERE memory_id = $1', [memoryId])
}

/** Purges versions replaced before `before` (ms); never a head. Relies on memory_version_superseded. */
export function purgeVersions(tx: Queryable, before: number): Promise<number> {
  return tx.run('DELETE FROM memory_version WHERE superseded_at IS NOT NULL AND superseded_at < $1', [before])
}
