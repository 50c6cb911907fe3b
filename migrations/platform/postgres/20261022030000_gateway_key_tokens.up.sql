-- A key that is rotated again while a grace lasts has several older tokens that are good: JSON, [{"hash", "until"}], the
-- newest first.
ALTER TABLE gateway_keys ADD COLUMN older_tokens TEXT NOT NULL DEFAULT '[]';
UPDATE gateway_keys
  SET older_tokens = json_build_array(json_build_object('hash', previous_hash, 'until', previous_until))::text
  WHERE previous_hash IS NOT NULL;
ALTER TABLE gateway_keys DROP COLUMN previous_hash;
ALTER TABLE gateway_keys DROP COLUMN previous_until;
