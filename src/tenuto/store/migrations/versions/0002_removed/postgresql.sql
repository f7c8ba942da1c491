ALTER TABLE text ADD COLUMN removed_at BIGINT CONSTRAINT text_removed_has_no_body CHECK (removed_at IS NULL OR body IS NULL)
;;
CREATE INDEX task_of_objective ON task (objective)
;;
CREATE INDEX text_kept ON text (task_id, id) WHERE body IS NOT NULL
