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
  /** Null when it is in a content store alone. Read it through `Bodies`. */
  content: string | null
  /** Length in UTF-8 of a body that was put into a content store; null for one that never was. */
  content_bytes: number | null
  /** The tags it ended with, JSON; null for the head. */
  tags: string | null
  created_at: number
  superseded_at: number | null
}

/** By the primary key. */
export function findVersion(db: Queryable, memoryId: string, watermark: string): Promise<VersionRow | undefined> {
  return db.get<VersionRow>('SELECT * FROM memory_version WHERE watermark = $1 AND memory_id = $2', [
    watermark,
    memoryId,
  ])
}

/** Versions by watermark. */
export async function findVersions(db: Queryable, watermarks: readonly string[]): Promise<Map<string, VersionRow>> {
  const rows = await db.all<VersionRow>(`SELECT * FROM memory_version WHERE watermark IN ${inList(db, '$1')}`, [
    JSON.stringify(watermarks),
  ])
  return new Map(rows.map((row) => [row.watermark, row]))
}

/** Bytes of the body of each of these versions, wherever it is. */
export async function findBodySizes(db: Queryable, watermarks: readonly string[]): Promise<Map<string, number>> {
  const rows = await db.all<{ watermark: string; bytes: number }>(
    `SELECT watermark, coalesce(content_bytes, octet_length(content)) AS bytes
       FROM memory_version WHERE watermark IN ${inList(db, '$1')}`,
    [JSON.stringify(watermarks)],
  )
  return new Map(rows.map((row) => [row.watermark, row.bytes]))
}

/** Those of the watermarks that are of a version. */
export async function findWatermarks(db: Queryable, watermarks: readonly string[]): Promise<Set<string>> {
  const rows = await db.all<{ watermark: string }>(
    `SELECT watermark FROM memory_version WHERE watermark IN ${inList(db, '$1')}`,
    [JSON.stringify(watermarks)],
  )
  return new Set(rows.map((row) => row.watermark))
}

/** By Memory, those of the heads whose bodies were put into a content store. */
export async function findStoredHeads(
  db: Queryable,
  memoryIds: readonly string[],
): Promise<Map<string, { workspaceId: string; memoryId: string; watermark: string }>> {
  const rows = await db.all<{ workspace_id: string; memory_id: string; watermark: string }>(
    `SELECT m.workspace_id, m.memory_id, v.watermark FROM memory m
       JOIN memory_version v ON v.watermark = m.head_watermark
      WHERE m.memory_id IN ${inList(db, '$1')} AND (v.content_bytes IS NOT NULL OR v.content IS NULL)`,
    [JSON.stringify(memoryIds)],
  )
  return new Map(
    rows.map((row) => [
      row.memory_id,
      { workspaceId: row.workspace_id, memoryId: row.memory_id, watermark: row.watermark },
    ]),
  )
}

/** Newest first, none created before `since` (ms); `before` is the number of the last one shown. */
export async function listVersions(
  db: Queryable,
  memoryId: string,
  since: number,
  limit: number,
  before: number | undefined,
): Promise<Page<WatermarkEntry>> {
  const rows = await db.all<Omit<VersionRow, 'content' | 'content_bytes'>>(
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

/** The head of its Memory from now on: `tags` and `superseded_at` come when another replaces it. */
export async function insertVersion(tx: Queryable, version: Omit<VersionRow, 'tags' | 'superseded_at'>): Promise<void> {
  await tx.run(
    `INSERT INTO memory_version (watermark, memory_id, version_no, op, agent_id, content_md5_before, content_md5_after,
       content, content_bytes, created_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
    [
      version.watermark,
      version.memory_id,
      version.version_no,
      version.op,
      version.agent_id,
      version.content_md5_before,
      version.content_md5_after,
      version.content,
      version.content_bytes,
      version.created_at,
    ],
  )
}

/** Freezes a version that another one replaces, with the tags it ended with. */
export async function supersedeVersion(tx: Queryable, watermark: string, tags: string, now: number): Promise<void> {
  await tx.run('UPDATE memory_version SET tags = $2, superseded_at = $3 WHERE watermark = $1', [watermark, tags, now])
}

/** Deletes the versions of a Memory, and tells whether a body of one was put into a content store. */
export async function deleteVersions(tx: Queryable, memoryId: string): Promise<boolean> {
  const rows = await tx.all<{ is_apart: number }>(
    `DELETE FROM memory_version WHERE memory_id = $1
     RETURNING CASE WHEN content_bytes IS NULL THEN 0 ELSE 1 END AS is_apart`,
    [memoryId],
  )
  return rows.some((row) => row.is_apart === 1)
}

/** A version whose body was put into a content store. */
export interface StoredVersion {
  workspace_id: string
  memory_id: string
  watermark: string
}

/**
 * Purges versions replaced before `before` (ms), never a head; gives their number, and those with a body in a content
 * store. Relies on memory_version_superseded.
 */
export async function purgeVersions(
  tx: Queryable,
  before: number,
): Promise<{ purged: number; stored: StoredVersion[] }> {
  const stored = await tx.all<StoredVersion>(
    `SELECT workspace_id, v.memory_id, watermark FROM memory_version v JOIN memory m ON m.memory_id = v.memory_id
      WHERE superseded_at IS NOT NULL AND superseded_at < $1 AND content_bytes IS NOT NULL`,
    [before],
  )
  const purged = await tx.run('DELETE FROM memory_version WHERE superseded_at IS NOT NULL AND superseded_at < $1', [
    before,
  ])
  return { purged, stored }
}
