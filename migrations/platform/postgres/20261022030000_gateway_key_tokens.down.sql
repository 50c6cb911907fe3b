-- Of the older tokens the newest alone has room.
ALTER TABLE gateway_keys ADD COLUMN previous_hash TEXT;
ALTER TABLE gateway_keys ADD COLUMN previous_until BIGINT;
UPDATE gateway_keys SET previous_hash = older_tokens::json -> 0 ->> 'hash',
    previous_until = (older_tokens::json -> 0 ->> 'until')::bigint
  WHERE older_tokens <> '[]';
ALTER TABLE gateway_keys DROP COLUMN older_tokens;
