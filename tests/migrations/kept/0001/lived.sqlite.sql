PRAGMA application_id = 1413828181;
BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0001');
CREATE TABLE attempt (
	id TEXT NOT NULL,
	revision INTEGER NOT NULL,
	task_id TEXT NOT NULL,
	number INTEGER NOT NULL,
	reason TEXT NOT NULL,
	anyway INTEGER NOT NULL,
	idempotency_key TEXT NOT NULL,
	cursor_before TEXT,
	conversation_id TEXT NOT NULL,
	lease_number INTEGER NOT NULL,
	state TEXT NOT NULL,
	scheduled_at INTEGER NOT NULL,
	live_at INTEGER,
	ended_at INTEGER,
	outcome TEXT,
	detail TEXT,
	signal TEXT,
	exit_code INTEGER,
	output_bytes INTEGER,
	tokens_in INTEGER,
	tokens_out INTEGER,
	cost INTEGER,
	currency TEXT,
	PRIMARY KEY (id),
	CONSTRAINT attempt_live_at CHECK (NOT (state IN ('live')) OR (live_at IS NOT NULL)),
	CONSTRAINT attempt_ended_at CHECK (NOT (state IN ('ended')) OR (ended_at IS NOT NULL AND outcome IS NOT NULL)),
	CONSTRAINT attempt_not_ended CHECK (NOT (state IN ('live', 'scheduled')) OR (ended_at IS NULL AND outcome IS NULL)),
	CONSTRAINT attempt_state_known CHECK (state IN ('cancelled', 'ended', 'live', 'scheduled')),
	CONSTRAINT attempt_revision_counts CHECK (revision >= 1),
	FOREIGN KEY(task_id) REFERENCES task (id),
	FOREIGN KEY(conversation_id) REFERENCES conversation (id)
)
 STRICT;
INSERT INTO "attempt" VALUES('a-00000a00000000000000z02dap',2,'t-00000300000000000000z00q6d',1,'event',0,'t-00000300000000000000z00q6d/1',NULL,'v-00000600000000000000z01ect',1,'ended',1772366400000000,1772366400000000,1772366400000000,'turn_end','half of it','working',0,0,NULL,NULL,NULL,NULL);
INSERT INTO "attempt" VALUES('a-00000k00000000000000z04jxx',2,'t-00000300000000000000z00q6d',2,'idle',0,'t-00000300000000000000z00q6d/2','0000000000000000000000000000000000000000000000000000000000000000','v-00000600000000000000z01ect',1,'ended',1772366400000000,1772366400000000,1772366400000000,'turn_end','swept','complete',0,0,NULL,NULL,NULL,NULL);
INSERT INTO "attempt" VALUES('a-00000z00000000000000z07fqh',2,'t-00000r00000000000000z05sk8',1,'event',0,'t-00000r00000000000000z05sk8/1',NULL,'v-00000v00000000000000z06gsn',1,'ended',1772366400000000,1772366400000000,1772366400000000,'turn_end','on it','blocked',0,0,NULL,NULL,NULL,NULL);
INSERT INTO "attempt" VALUES('a-00001d00000000000000z0aw03',1,'t-00001600000000000000z095vt',1,'event',0,'t-00001600000000000000z095vt/1',NULL,'v-00001900000000000000z09x27',1,'live',1772366460000000,1772366460000000,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
CREATE TABLE chain (
	id TEXT NOT NULL,
	revision INTEGER NOT NULL,
	run_id TEXT NOT NULL,
	state TEXT NOT NULL,
	goal TEXT NOT NULL,
	repo TEXT NOT NULL,
	selector TEXT NOT NULL,
	source TEXT NOT NULL,
	authorization TEXT NOT NULL,
	caps TEXT NOT NULL,
	attempt_cap INTEGER NOT NULL,
	cwd TEXT NOT NULL,
	created_at INTEGER NOT NULL,
	agent TEXT,
	playbook TEXT,
	position INTEGER NOT NULL,
	processed INTEGER NOT NULL,
	look_at INTEGER,
	reason TEXT,
	ended_at INTEGER,
	base TEXT,
	phases INTEGER NOT NULL,
	asks TEXT,
	swept TEXT,
	seen TEXT,
	PRIMARY KEY (id),
	CONSTRAINT chain_ended_at CHECK ((state IN ('capped', 'complete', 'stopped')) = (ended_at IS NOT NULL)),
	CONSTRAINT chain_counts CHECK (position >= 0 AND processed >= 0 AND processed <= position),
	CONSTRAINT chain_attempt_cap CHECK (attempt_cap BETWEEN 1 AND 20),
	CONSTRAINT chain_state_known CHECK (state IN ('capped', 'complete', 'open', 'stopped')),
	CONSTRAINT chain_revision_counts CHECK (revision >= 1),
	FOREIGN KEY(run_id) REFERENCES run (id),
	FOREIGN KEY(swept) REFERENCES text (id)
)
 STRICT;
CREATE TABLE command (
	id TEXT NOT NULL,
	revision INTEGER NOT NULL,
	kind TEXT NOT NULL,
	task_id TEXT NOT NULL,
	attempt_id TEXT,
	conversation_id TEXT,
	executor TEXT NOT NULL,
	state TEXT NOT NULL,
	epoch INTEGER NOT NULL,
	fence TEXT NOT NULL,
	scopes TEXT NOT NULL,
	created_at INTEGER NOT NULL,
	payload TEXT,
	digest TEXT,
	deadline INTEGER,
	armed_at INTEGER,
	submitted_at INTEGER,
	settled_at INTEGER,
	evidence TEXT,
	detail TEXT,
	released_by TEXT,
	verdict TEXT,
	late INTEGER NOT NULL,
	target TEXT,
	place TEXT,
	PRIMARY KEY (id),
	CONSTRAINT command_armed_at CHECK (NOT (state IN ('ambiguous', 'armed', 'submitted')) OR (armed_at IS NOT NULL)),
	CONSTRAINT command_queued CHECK (NOT (state IN ('queued')) OR (armed_at IS NULL AND submitted_at IS NULL)),
	CONSTRAINT command_submitted_at CHECK (NOT (state IN ('submitted')) OR (submitted_at IS NOT NULL)),
	CONSTRAINT command_settled_at CHECK ((state IN ('acknowledged', 'cancelled', 'expired', 'failed', 'released')) = (settled_at IS NOT NULL)),
	CONSTRAINT command_was_armed CHECK (NOT (state IN ('acknowledged', 'failed', 'released')) OR (armed_at IS NOT NULL)),
	CONSTRAINT command_released_by_somebody CHECK (NOT (state IN ('released')) OR (released_by IS NOT NULL AND verdict IS NOT NULL)),
	CONSTRAINT command_state_known CHECK (state IN ('acknowledged', 'ambiguous', 'armed', 'cancelled', 'expired', 'failed', 'queued', 'released', 'submitted')),
	CONSTRAINT command_revision_counts CHECK (revision >= 1),
	FOREIGN KEY(task_id) REFERENCES task (id),
	FOREIGN KEY(attempt_id) REFERENCES attempt (id),
	FOREIGN KEY(conversation_id) REFERENCES conversation (id),
	FOREIGN KEY(payload) REFERENCES text (id)
)
 STRICT;
INSERT INTO "command" VALUES('c-00000700000000000000z01p49',3,'send','t-00000300000000000000z00q6d','a-00000a00000000000000z02dap','v-00000600000000000000z01ect','played','acknowledged',1,'a9a469cc1deda1b9d4c4a1f8a75f5bfffc29209ea72bc00225b4b64be402b51d','["task:t-00000300000000000000z00q6d","conversation:played:t-00000300000000000000z00q6d/1"]',1772366400000000,'x-00000900000000000000z025k7','7a6d5ca9e0697f3498dd15f325d193b2faa3072a5380d0355b1a06fd1bcaef6b',1772380800000000,1772366400000000,1772366400000000,1772366400000000,'played rank 1',NULL,NULL,NULL,0,NULL,NULL);
INSERT INTO "command" VALUES('c-00000g00000000000000z03vqg',3,'send','t-00000300000000000000z00q6d','a-00000k00000000000000z04jxx','v-00000600000000000000z01ect','played','acknowledged',1,'999dbf0efe116c27f3c5c735eaddd78fcc5c4cde9d099d0da685bd2341022f8a','["task:t-00000300000000000000z00q6d","conversation:played:t-00000300000000000000z00q6d/1"]',1772366400000000,'x-00000j00000000000000z04b6e','5d555e0116f4ec45ed3fc333aedc541a890900aa82225eb17fb3ad8ed5db781f',1772380800000000,1772366400000000,1772366400000000,1772366400000000,'played rank 1',NULL,NULL,NULL,0,NULL,NULL);
INSERT INTO "command" VALUES('c-00000w00000000000000z06rh4',3,'send','t-00000r00000000000000z05sk8','a-00000z00000000000000z07fqh','v-00000v00000000000000z06gsn','played','acknowledged',1,'6bcc6fcb596de39f7361ec7811d7ef8e20c3087f4562935807e6e13cab57344b','["task:t-00000r00000000000000z05sk8","conversation:played:t-00000r00000000000000z05sk8/1"]',1772366400000000,'x-00000y00000000000000z07802','8000f5ee1ce9acd4e82f4fd8521e6642b2dcad11623ecf5ed5925f85ed74bf14',1772380800000000,1772366400000000,1772366400000000,1772366400000000,'played rank 1',NULL,NULL,NULL,0,NULL,NULL);
INSERT INTO "command" VALUES('c-00001a00000000000000z0a4sp',3,'send','t-00001600000000000000z095vt','a-00001d00000000000000z0aw03','v-00001900000000000000z09x27','played','acknowledged',1,'d708a2ebc4fb62339b450b1d239ff0d9e0827f6b3103d7999776a6114f9d09ab','["task:t-00001600000000000000z095vt","conversation:played:t-00001600000000000000z095vt/1"]',1772366460000000,'x-00001c00000000000000z0am8m','bf2f770538d5de2a8a5a33c7a298d57fdad1b2b8b9da6c05557fb8daeccff752',1772380860000000,1772366460000000,1772366460000000,1772366460000000,'played rank 1',NULL,NULL,NULL,0,NULL,NULL);
CREATE TABLE conversation (
	id TEXT NOT NULL,
	revision INTEGER NOT NULL,
	task_id TEXT NOT NULL,
	identity TEXT NOT NULL,
	executor TEXT NOT NULL,
	state TEXT NOT NULL,
	lease_number INTEGER,
	expires_at INTEGER,
	opened_at INTEGER NOT NULL,
	parent TEXT,
	root TEXT,
	handoff_to TEXT,
	ended_at INTEGER,
	turns INTEGER NOT NULL,
	place TEXT,
	PRIMARY KEY (id),
	CONSTRAINT conversation_leased CHECK (NOT (state IN ('active')) OR (lease_number IS NOT NULL AND expires_at IS NOT NULL)),
	CONSTRAINT conversation_ended_at CHECK ((state IN ('abandoned', 'ended', 'superseded')) = (ended_at IS NOT NULL)),
	CONSTRAINT conversation_state_known CHECK (state IN ('abandoned', 'active', 'candidate', 'ended', 'superseded')),
	CONSTRAINT conversation_revision_counts CHECK (revision >= 1),
	FOREIGN KEY(task_id) REFERENCES task (id)
)
 STRICT;
INSERT INTO "conversation" VALUES('v-00000600000000000000z01ect',7,'t-00000300000000000000z00q6d','played:t-00000300000000000000z00q6d/1','played','ended',1,1772373600000000,1772366400000000,NULL,'v-00000600000000000000z01ect',NULL,1772366400000000,2,NULL);
INSERT INTO "conversation" VALUES('v-00000v00000000000000z06gsn',4,'t-00000r00000000000000z05sk8','played:t-00000r00000000000000z05sk8/1','played','active',1,1772373600000000,1772366400000000,NULL,'v-00000v00000000000000z06gsn',NULL,NULL,1,NULL);
INSERT INTO "conversation" VALUES('v-00001900000000000000z09x27',3,'t-00001600000000000000z095vt','played:t-00001600000000000000z095vt/1','played','active',1,1772373660000000,1772366460000000,NULL,'v-00001900000000000000z09x27',NULL,NULL,0,NULL);
CREATE TABLE event (
	epoch INTEGER NOT NULL,
	n INTEGER NOT NULL,
	at INTEGER NOT NULL,
	kind TEXT NOT NULL,
	run_id TEXT,
	task_id TEXT,
	data TEXT NOT NULL,
	PRIMARY KEY (n)
)
 STRICT;
INSERT INTO "event" VALUES(1,1,1772366400000000,'run.created','r-00000200000000000000z00fey',NULL,'{"title":"Ended"}');
INSERT INTO "event" VALUES(1,2,1772366400000000,'task.created','r-00000200000000000000z00fey','t-00000300000000000000z00q6d','{"title":"Ended"}');
INSERT INTO "event" VALUES(1,3,1772366400000000,'task.started','r-00000200000000000000z00fey','t-00000300000000000000z00q6d','{}');
INSERT INTO "event" VALUES(1,4,1772366400000000,'conversation.opened','r-00000200000000000000z00fey','t-00000300000000000000z00q6d','{"conversation":"v-00000600000000000000z01ect"}');
INSERT INTO "event" VALUES(1,5,1772366400000000,'conversation.claimed','r-00000200000000000000z00fey','t-00000300000000000000z00q6d','{"conversation":"v-00000600000000000000z01ect","lease_number":1}');
INSERT INTO "event" VALUES(1,6,1772366400000000,'attempt.armed','r-00000200000000000000z00fey','t-00000300000000000000z00q6d','{"anyway":false,"attempt":"a-00000a00000000000000z02dap","number":1,"reason":"event"}');
INSERT INTO "event" VALUES(1,7,1772366400000000,'command.armed','r-00000200000000000000z00fey','t-00000300000000000000z00q6d','{"command":"c-00000700000000000000z01p49","epoch":1,"kind":"send"}');
INSERT INTO "event" VALUES(1,8,1772366400000000,'command.submitted','r-00000200000000000000z00fey','t-00000300000000000000z00q6d','{"command":"c-00000700000000000000z01p49","detail":null,"kind":"send","late":false}');
INSERT INTO "event" VALUES(1,9,1772366400000000,'command.acknowledged','r-00000200000000000000z00fey','t-00000300000000000000z00q6d','{"command":"c-00000700000000000000z01p49","detail":null,"kind":"send","late":false}');
INSERT INTO "event" VALUES(1,10,1772366400000000,'attempt.ended','r-00000200000000000000z00fey','t-00000300000000000000z00q6d','{"attempt":"a-00000a00000000000000z02dap","detail":"half of it","number":1,"outcome":"turn_end","signal":"working"}');
INSERT INTO "event" VALUES(1,11,1772366400000000,'wake.added','r-00000200000000000000z00fey','t-00000300000000000000z00q6d','{"anyway":false,"kind":"idle","reason":"the turn ended and there is more to do"}');
INSERT INTO "event" VALUES(1,12,1772366400000000,'attempt.armed','r-00000200000000000000z00fey','t-00000300000000000000z00q6d','{"anyway":false,"attempt":"a-00000k00000000000000z04jxx","number":2,"reason":"idle"}');
INSERT INTO "event" VALUES(1,13,1772366400000000,'command.armed','r-00000200000000000000z00fey','t-00000300000000000000z00q6d','{"command":"c-00000g00000000000000z03vqg","epoch":1,"kind":"send"}');
INSERT INTO "event" VALUES(1,14,1772366400000000,'command.submitted','r-00000200000000000000z00fey','t-00000300000000000000z00q6d','{"command":"c-00000g00000000000000z03vqg","detail":null,"kind":"send","late":false}');
INSERT INTO "event" VALUES(1,15,1772366400000000,'command.acknowledged','r-00000200000000000000z00fey','t-00000300000000000000z00q6d','{"command":"c-00000g00000000000000z03vqg","detail":null,"kind":"send","late":false}');
INSERT INTO "event" VALUES(1,16,1772366400000000,'attempt.ended','r-00000200000000000000z00fey','t-00000300000000000000z00q6d','{"attempt":"a-00000k00000000000000z04jxx","detail":"swept","number":2,"outcome":"turn_end","signal":"complete"}');
INSERT INTO "event" VALUES(1,17,1772366400000000,'task.completion_claimed','r-00000200000000000000z00fey','t-00000300000000000000z00q6d','{"evidence":"it is clean"}');
INSERT INTO "event" VALUES(1,18,1772366400000000,'task.completed','r-00000200000000000000z00fey','t-00000300000000000000z00q6d','{"reason":"swept","reference":"it is clean","source":"agent","verified":false}');
INSERT INTO "event" VALUES(1,19,1772366400000000,'conversation.ended','r-00000200000000000000z00fey','t-00000300000000000000z00q6d','{"conversation":"v-00000600000000000000z01ect","lease_number":1}');
INSERT INTO "event" VALUES(1,20,1772366400000000,'token.revoked','r-00000200000000000000z00fey','t-00000300000000000000z00q6d','{"by":"the end of its task","name":"2 of its turns"}');
INSERT INTO "event" VALUES(1,21,1772366400000000,'decision.rested','r-00000200000000000000z00fey','t-00000300000000000000z00q6d','{"change":"nothing; start a new task for more work","rung":"terminal","sentence":"the task is completed"}');
INSERT INTO "event" VALUES(1,22,1772366400000000,'run.created','r-00000q00000000000000z05hvs',NULL,'{"title":"Waiting"}');
INSERT INTO "event" VALUES(1,23,1772366400000000,'task.created','r-00000q00000000000000z05hvs','t-00000r00000000000000z05sk8','{"title":"Waiting"}');
INSERT INTO "event" VALUES(1,24,1772366400000000,'task.started','r-00000q00000000000000z05hvs','t-00000r00000000000000z05sk8','{}');
INSERT INTO "event" VALUES(1,25,1772366400000000,'conversation.opened','r-00000q00000000000000z05hvs','t-00000r00000000000000z05sk8','{"conversation":"v-00000v00000000000000z06gsn"}');
INSERT INTO "event" VALUES(1,26,1772366400000000,'conversation.claimed','r-00000q00000000000000z05hvs','t-00000r00000000000000z05sk8','{"conversation":"v-00000v00000000000000z06gsn","lease_number":1}');
INSERT INTO "event" VALUES(1,27,1772366400000000,'attempt.armed','r-00000q00000000000000z05hvs','t-00000r00000000000000z05sk8','{"anyway":false,"attempt":"a-00000z00000000000000z07fqh","number":1,"reason":"event"}');
INSERT INTO "event" VALUES(1,28,1772366400000000,'command.armed','r-00000q00000000000000z05hvs','t-00000r00000000000000z05sk8','{"command":"c-00000w00000000000000z06rh4","epoch":1,"kind":"send"}');
INSERT INTO "event" VALUES(1,29,1772366400000000,'command.submitted','r-00000q00000000000000z05hvs','t-00000r00000000000000z05sk8','{"command":"c-00000w00000000000000z06rh4","detail":null,"kind":"send","late":false}');
INSERT INTO "event" VALUES(1,30,1772366400000000,'command.acknowledged','r-00000q00000000000000z05hvs','t-00000r00000000000000z05sk8','{"command":"c-00000w00000000000000z06rh4","detail":null,"kind":"send","late":false}');
INSERT INTO "event" VALUES(1,31,1772366400000000,'attempt.ended','r-00000q00000000000000z05hvs','t-00000r00000000000000z05sk8','{"attempt":"a-00000z00000000000000z07fqh","detail":"on it","number":1,"outcome":"turn_end","signal":"blocked"}');
INSERT INTO "event" VALUES(1,32,1772366400000000,'wait.opened','r-00000q00000000000000z05hvs','t-00000r00000000000000z05sk8','{"kind":"human","question":"a person: which colour?","wait":"w-00001300000000000000z08end"}');
INSERT INTO "event" VALUES(1,33,1772366400000000,'decision.rested','r-00000q00000000000000z05hvs','t-00000r00000000000000z05sk8','{"change":"tenuto answer t-00000r00000000000000z05sk8 --file ANSWER","rung":"human","sentence":"it waits for a person: a person: which colour?"}');
INSERT INTO "event" VALUES(1,34,1772366460000000,'run.created','r-00001500000000000000z08y4b',NULL,'{"title":"Going on"}');
INSERT INTO "event" VALUES(1,35,1772366460000000,'task.created','r-00001500000000000000z08y4b','t-00001600000000000000z095vt','{"title":"Going on"}');
INSERT INTO "event" VALUES(1,36,1772366460000000,'task.started','r-00001500000000000000z08y4b','t-00001600000000000000z095vt','{}');
INSERT INTO "event" VALUES(1,37,1772366460000000,'conversation.opened','r-00001500000000000000z08y4b','t-00001600000000000000z095vt','{"conversation":"v-00001900000000000000z09x27"}');
INSERT INTO "event" VALUES(1,38,1772366460000000,'conversation.claimed','r-00001500000000000000z08y4b','t-00001600000000000000z095vt','{"conversation":"v-00001900000000000000z09x27","lease_number":1}');
INSERT INTO "event" VALUES(1,39,1772366460000000,'attempt.armed','r-00001500000000000000z08y4b','t-00001600000000000000z095vt','{"anyway":false,"attempt":"a-00001d00000000000000z0aw03","number":1,"reason":"event"}');
INSERT INTO "event" VALUES(1,40,1772366460000000,'command.armed','r-00001500000000000000z08y4b','t-00001600000000000000z095vt','{"command":"c-00001a00000000000000z0a4sp","epoch":1,"kind":"send"}');
INSERT INTO "event" VALUES(1,41,1772366460000000,'command.submitted','r-00001500000000000000z08y4b','t-00001600000000000000z095vt','{"command":"c-00001a00000000000000z0a4sp","detail":null,"kind":"send","late":false}');
INSERT INTO "event" VALUES(1,42,1772366460000000,'command.acknowledged','r-00001500000000000000z08y4b','t-00001600000000000000z095vt','{"command":"c-00001a00000000000000z0a4sp","detail":null,"kind":"send","late":false}');
INSERT INTO "event" VALUES(1,43,1772366460000000,'message.stored','r-00001500000000000000z08y4b','t-00001600000000000000z095vt','{"kind":"words","message":"m-00001h00000000000000z0btxz","sender":"operator"}');
INSERT INTO "event" VALUES(1,44,1772366460000000,'report.recorded','r-00001500000000000000z08y4b','t-00001600000000000000z095vt','{"kind":"progress","line":"step: tiles","lines":1}');
CREATE TABLE hold (
	scope TEXT NOT NULL,
	command_id TEXT NOT NULL,
	PRIMARY KEY (scope),
	FOREIGN KEY(command_id) REFERENCES command (id)
)
 WITHOUT ROWID,
 STRICT;
CREATE TABLE idempotency (
	scope TEXT NOT NULL,
	"key" TEXT NOT NULL,
	digest TEXT NOT NULL,
	result TEXT NOT NULL,
	at INTEGER NOT NULL,
	PRIMARY KEY (scope, "key")
)
 WITHOUT ROWID,
 STRICT;
INSERT INTO "idempotency" VALUES('operator:','once','0b524386d030a48c5df007cee8ef41d38a73078c13bc87f643f62756ec268c32','{"because":"turn 1 is under way","by":null,"delivery":"next_turn","message":"m-00001h00000000000000z0btxz","task":"t-00001600000000000000z095vt"}',1772366460000000);
CREATE TABLE leadership (
	epoch INTEGER NOT NULL,
	owner TEXT NOT NULL,
	host TEXT NOT NULL,
	pid INTEGER NOT NULL,
	started TEXT NOT NULL,
	boot_id TEXT NOT NULL,
	address TEXT NOT NULL,
	taken_at INTEGER NOT NULL,
	renewed_at INTEGER NOT NULL,
	expires_at INTEGER NOT NULL,
	stop_asked_at INTEGER,
	released_at INTEGER,
	one INTEGER DEFAULT 1 NOT NULL,
	CONSTRAINT leadership_is_one CHECK (one = 1),
	CONSTRAINT leadership_epoch_counts CHECK (epoch >= 1),
	UNIQUE (one)
)
 STRICT;
INSERT INTO "leadership" VALUES(1,'me','host',4711,'started','boot','/the-place-it-was-made/api.sock',1772366400000000,1772366400000000,1803902400000000,NULL,1772366460000000,1);
CREATE TABLE link (
	id TEXT NOT NULL,
	revision INTEGER NOT NULL,
	chain_id TEXT NOT NULL,
	position INTEGER NOT NULL,
	predecessor TEXT,
	task_id TEXT NOT NULL,
	unit TEXT NOT NULL,
	place TEXT NOT NULL,
	"key" TEXT NOT NULL,
	attempt INTEGER NOT NULL,
	made_at INTEGER NOT NULL,
	outcome TEXT,
	evidence TEXT,
	blocker TEXT,
	command_id TEXT,
	handed_at INTEGER,
	recorded_at INTEGER,
	PRIMARY KEY (id),
	CONSTRAINT link_counts CHECK (position >= 1 AND attempt >= 1),
	CONSTRAINT link_first_has_no_predecessor CHECK ((position = 1) = (predecessor IS NULL)),
	CONSTRAINT link_recorded_outcome CHECK (NOT (recorded_at IS NOT NULL) OR (outcome IS NOT NULL)),
	CONSTRAINT link_key_is_sha256 CHECK (length(key) = 64),
	CONSTRAINT link_revision_counts CHECK (revision >= 1),
	FOREIGN KEY(chain_id) REFERENCES chain (id),
	FOREIGN KEY(predecessor) REFERENCES task (id),
	FOREIGN KEY(task_id) REFERENCES task (id),
	FOREIGN KEY(command_id) REFERENCES command (id)
)
 STRICT;
CREATE TABLE mandate (
	id TEXT NOT NULL,
	revision INTEGER NOT NULL,
	chain_id TEXT NOT NULL,
	forge TEXT NOT NULL,
	mode TEXT NOT NULL,
	method TEXT NOT NULL,
	branches TEXT NOT NULL,
	base TEXT,
	gate TEXT NOT NULL,
	reviews INTEGER NOT NULL,
	made_at INTEGER NOT NULL,
	reviewer TEXT,
	playbook TEXT,
	PRIMARY KEY (id),
	CONSTRAINT mandate_reviews_count CHECK (reviews BETWEEN 1 AND 100),
	CONSTRAINT mandate_revision_counts CHECK (revision >= 1),
	FOREIGN KEY(chain_id) REFERENCES chain (id)
)
 STRICT;
CREATE TABLE message (
	id TEXT NOT NULL,
	revision INTEGER NOT NULL,
	task_id TEXT NOT NULL,
	sender TEXT NOT NULL,
	kind TEXT NOT NULL,
	policy TEXT NOT NULL,
	text TEXT,
	size INTEGER NOT NULL,
	state TEXT NOT NULL,
	created_at INTEGER NOT NULL,
	not_before INTEGER NOT NULL,
	corrective TEXT,
	carried_by TEXT,
	tries INTEGER NOT NULL,
	settled_at INTEGER,
	party TEXT NOT NULL,
	PRIMARY KEY (id),
	CONSTRAINT message_carried_by CHECK (NOT (state IN ('carried')) OR (carried_by IS NOT NULL)),
	CONSTRAINT message_settled_at CHECK (NOT (state IN ('delivered', 'dropped')) OR (settled_at IS NOT NULL)),
	CONSTRAINT message_state_known CHECK (state IN ('ambiguous', 'carried', 'deferred', 'delivered', 'dropped', 'recorded', 'retry_wait')),
	CONSTRAINT message_revision_counts CHECK (revision >= 1),
	FOREIGN KEY(task_id) REFERENCES task (id),
	FOREIGN KEY(text) REFERENCES text (id),
	FOREIGN KEY(carried_by) REFERENCES command (id)
)
 STRICT;
INSERT INTO "message" VALUES('m-00001h00000000000000z0btxz',1,'t-00001600000000000000z095vt','operator','words','next_turn','x-00001g00000000000000z0bk6g',16,'deferred',1772366460000000,1772366460000000,NULL,NULL,0,NULL,'operator');
CREATE TABLE permission (
	id TEXT NOT NULL,
	revision INTEGER NOT NULL,
	task_id TEXT NOT NULL,
	attempt_id TEXT NOT NULL,
	command_id TEXT NOT NULL,
	request TEXT NOT NULL,
	tool TEXT NOT NULL,
	what TEXT NOT NULL,
	fingerprint TEXT NOT NULL,
	asked_at INTEGER NOT NULL,
	wait_id TEXT,
	verdict TEXT,
	answered_by TEXT,
	answered_at INTEGER,
	words TEXT,
	parked_at INTEGER,
	told_at INTEGER,
	closed_at INTEGER,
	outcome TEXT,
	PRIMARY KEY (id),
	CONSTRAINT permission_answered_by_somebody CHECK ((verdict IS NULL) = (answered_by IS NULL)),
	CONSTRAINT permission_answered_at CHECK ((verdict IS NULL) = (answered_at IS NULL)),
	CONSTRAINT permission_closed_somehow CHECK ((closed_at IS NULL) = (outcome IS NULL)),
	CONSTRAINT permission_fingerprint_is_sha256 CHECK (length(fingerprint) = 64),
	CONSTRAINT permission_told_something CHECK (NOT (told_at IS NOT NULL) OR (verdict IS NOT NULL OR parked_at IS NOT NULL)),
	CONSTRAINT permission_revision_counts CHECK (revision >= 1),
	FOREIGN KEY(task_id) REFERENCES task (id),
	FOREIGN KEY(attempt_id) REFERENCES attempt (id),
	FOREIGN KEY(command_id) REFERENCES command (id),
	FOREIGN KEY(wait_id) REFERENCES wait (id),
	FOREIGN KEY(words) REFERENCES text (id)
)
 STRICT;
CREATE TABLE phase (
	id TEXT NOT NULL,
	revision INTEGER NOT NULL,
	chain_id TEXT NOT NULL,
	unit TEXT NOT NULL,
	task_id TEXT NOT NULL,
	number INTEGER NOT NULL,
	state TEXT NOT NULL,
	opened_at INTEGER NOT NULL,
	branch TEXT,
	url TEXT,
	head TEXT,
	landing TEXT,
	undone_by TEXT NOT NULL,
	settled_at INTEGER,
	reason TEXT,
	PRIMARY KEY (id),
	CONSTRAINT phase_number_counts CHECK (number >= 1),
	CONSTRAINT phase_merged CHECK (NOT (state IN ('merged')) OR (landing IS NOT NULL AND undone_by = '[]')),
	CONSTRAINT phase_settled_at CHECK ((state IN ('open')) = (settled_at IS NULL)),
	CONSTRAINT phase_state_known CHECK (state IN ('closed', 'merged', 'open', 'reverted')),
	CONSTRAINT phase_revision_counts CHECK (revision >= 1),
	FOREIGN KEY(chain_id) REFERENCES chain (id),
	FOREIGN KEY(task_id) REFERENCES task (id)
)
 STRICT;
CREATE TABLE proposal (
	id TEXT NOT NULL,
	revision INTEGER NOT NULL,
	chain_id TEXT NOT NULL,
	task_id TEXT NOT NULL,
	unit TEXT NOT NULL,
	state TEXT NOT NULL,
	number INTEGER NOT NULL,
	branch TEXT NOT NULL,
	base TEXT NOT NULL,
	head TEXT NOT NULL,
	url TEXT NOT NULL,
	opened_at INTEGER NOT NULL,
	gate_command TEXT,
	gate_head TEXT,
	gate TEXT,
	gate_tries INTEGER NOT NULL,
	reviews INTEGER NOT NULL,
	merge_command TEXT,
	merged_as TEXT,
	reason TEXT,
	settled_at INTEGER,
	PRIMARY KEY (id),
	CONSTRAINT proposal_counts CHECK (number >= 1 AND reviews >= 0 AND gate_tries >= 0),
	CONSTRAINT proposal_settled_at CHECK ((state IN ('merged', 'turned_down')) = (settled_at IS NOT NULL)),
	CONSTRAINT proposal_merged_as CHECK ((state IN ('merged')) = (merged_as IS NOT NULL)),
	CONSTRAINT proposal_gated_at_a_commit CHECK ((gate_command IS NULL) = (gate_head IS NULL)),
	CONSTRAINT proposal_state_known CHECK (state IN ('merged', 'open', 'turned_down')),
	CONSTRAINT proposal_revision_counts CHECK (revision >= 1),
	FOREIGN KEY(chain_id) REFERENCES chain (id),
	FOREIGN KEY(task_id) REFERENCES task (id),
	FOREIGN KEY(gate_command) REFERENCES command (id),
	FOREIGN KEY(merge_command) REFERENCES command (id)
)
 STRICT;
CREATE TABLE registry (
	id TEXT NOT NULL,
	revision INTEGER NOT NULL,
	created_at INTEGER NOT NULL,
	held_at INTEGER,
	held_by TEXT,
	merging_off_at INTEGER,
	merging_off_by TEXT,
	one INTEGER DEFAULT 1 NOT NULL,
	PRIMARY KEY (id),
	CONSTRAINT registry_is_one CHECK (one = 1),
	CONSTRAINT registry_held_by_somebody CHECK ((held_at IS NULL) = (held_by IS NULL)),
	CONSTRAINT registry_merging_off_by_somebody CHECK ((merging_off_at IS NULL) = (merging_off_by IS NULL)),
	CONSTRAINT registry_revision_counts CHECK (revision >= 1),
	UNIQUE (one)
)
 STRICT;
INSERT INTO "registry" VALUES('g-00000100000000000000z007qf',1,1772366400000000,NULL,NULL,NULL,NULL,1);
CREATE TABLE report (
	id TEXT NOT NULL,
	task_id TEXT NOT NULL,
	attempt_id TEXT,
	kind TEXT NOT NULL,
	lines TEXT NOT NULL,
	at INTEGER NOT NULL,
	PRIMARY KEY (id),
	FOREIGN KEY(task_id) REFERENCES task (id)
)
 STRICT;
INSERT INTO "report" VALUES('p-00000d00000000000000z034h3','t-00000300000000000000z00q6d','a-00000a00000000000000z02dap','signal','[["status","working"],["summary","half of it"]]',1772366400000000);
INSERT INTO "report" VALUES('p-00000p00000000000000z05a4a','t-00000300000000000000z00q6d','a-00000k00000000000000z04jxx','signal','[["status","complete"],["summary","swept"],["evidence","it is clean"]]',1772366400000000);
INSERT INTO "report" VALUES('p-00001200000000000000z086xy','t-00000r00000000000000z05sk8','a-00000z00000000000000z07fqh','signal','[["status","blocked"],["summary","on it"],["needs","a person: which colour?"]]',1772366400000000);
INSERT INTO "report" VALUES('p-00001j00000000000000z0c2ne','t-00001600000000000000z095vt','a-00001d00000000000000z0aw03','progress','[["step","tiles"]]',1772366460000000);
CREATE TABLE review (
	id TEXT NOT NULL,
	revision INTEGER NOT NULL,
	proposal_id TEXT NOT NULL,
	task_id TEXT NOT NULL,
	number INTEGER NOT NULL,
	head TEXT NOT NULL,
	asked_at INTEGER NOT NULL,
	verdict TEXT,
	findings TEXT,
	said_at INTEGER,
	PRIMARY KEY (id),
	CONSTRAINT review_counts CHECK (number >= 1),
	CONSTRAINT review_said_at CHECK ((verdict IS NULL) = (said_at IS NULL)),
	CONSTRAINT review_revision_counts CHECK (revision >= 1),
	FOREIGN KEY(proposal_id) REFERENCES proposal (id),
	FOREIGN KEY(task_id) REFERENCES task (id)
)
 STRICT;
CREATE TABLE run (
	id TEXT NOT NULL,
	revision INTEGER NOT NULL,
	title TEXT NOT NULL,
	state TEXT NOT NULL,
	auto_resume TEXT NOT NULL,
	policy TEXT NOT NULL,
	coordinator TEXT,
	created_at INTEGER NOT NULL,
	stopped_at INTEGER,
	PRIMARY KEY (id),
	CONSTRAINT run_stopped_at CHECK ((state IN ('stopped')) = (stopped_at IS NOT NULL)),
	CONSTRAINT run_state_known CHECK (state IN ('open', 'stopped')),
	CONSTRAINT run_revision_counts CHECK (revision >= 1)
)
 STRICT;
INSERT INTO "run" VALUES('r-00000200000000000000z00fey',1,'Ended','open','on','{"allow":[],"arm_within":10000000,"check_limit":600000000,"check_tries":3,"checkpoint_after":1200000000,"checkpoint_jitter":60000000,"dead_man":0,"dead_man_after":600000000,"dead_man_apart":1800000000,"dead_man_ask":300000000,"delivery_end":86400000000,"deny":[],"fault_recoveries":3,"fresh_sessions":3,"idle_delay":0,"interrupt_grace":10000000,"lease_life":7200000000,"limit_buffer":60000000,"limit_jitter":30000000,"limit_lead":120000000,"limit_tries":12,"limit_unknown":[300000000,900000000,1800000000,3600000000],"live_spacing":900000000,"look_at_living_turn":2000000,"max_attempts":null,"max_cost":null,"max_live":null,"max_tokens":null,"merge_facts":30000000,"merge_rate":4,"merge_window":3600000000,"message_bytes":65536,"network_fresh":30000000,"news_spacing":300000000,"objective_bytes":262144,"overload_retry":[30000000,120000000,300000000,900000000],"overload_tries":12,"page_fresh":30000000,"pending_life":14400000000,"pending_tasks":48,"permission_wait":1800000000,"prompt_bytes":327680,"ready_grace":1800000000,"reconcile_age":120000000,"reconcile_separation":3000000,"reconcile_tries":3,"report_bytes":32768,"retry_unsent":[5000000,15000000,60000000,300000000],"reviews":10,"run_attempts":null,"run_cost":null,"run_live":null,"run_tokens":null,"self_progress_streak":3,"slot_rest":600000000,"spawn_rate":30,"spawn_window":600000000,"stall_pause":6,"stall_warn":3,"suspect_hard":600000000,"suspect_network":180000000,"suspect_page":120000000,"suspect_tool":180000000,"turn_limit":14400000000}',NULL,1772366400000000,NULL);
INSERT INTO "run" VALUES('r-00000q00000000000000z05hvs',1,'Waiting','open','on','{"allow":[],"arm_within":10000000,"check_limit":600000000,"check_tries":3,"checkpoint_after":1200000000,"checkpoint_jitter":60000000,"dead_man":0,"dead_man_after":600000000,"dead_man_apart":1800000000,"dead_man_ask":300000000,"delivery_end":86400000000,"deny":[],"fault_recoveries":3,"fresh_sessions":3,"idle_delay":0,"interrupt_grace":10000000,"lease_life":7200000000,"limit_buffer":60000000,"limit_jitter":30000000,"limit_lead":120000000,"limit_tries":12,"limit_unknown":[300000000,900000000,1800000000,3600000000],"live_spacing":900000000,"look_at_living_turn":2000000,"max_attempts":null,"max_cost":null,"max_live":null,"max_tokens":null,"merge_facts":30000000,"merge_rate":4,"merge_window":3600000000,"message_bytes":65536,"network_fresh":30000000,"news_spacing":300000000,"objective_bytes":262144,"overload_retry":[30000000,120000000,300000000,900000000],"overload_tries":12,"page_fresh":30000000,"pending_life":14400000000,"pending_tasks":48,"permission_wait":1800000000,"prompt_bytes":327680,"ready_grace":1800000000,"reconcile_age":120000000,"reconcile_separation":3000000,"reconcile_tries":3,"report_bytes":32768,"retry_unsent":[5000000,15000000,60000000,300000000],"reviews":10,"run_attempts":null,"run_cost":null,"run_live":null,"run_tokens":null,"self_progress_streak":3,"slot_rest":600000000,"spawn_rate":30,"spawn_window":600000000,"stall_pause":6,"stall_warn":3,"suspect_hard":600000000,"suspect_network":180000000,"suspect_page":120000000,"suspect_tool":180000000,"turn_limit":14400000000}',NULL,1772366400000000,NULL);
INSERT INTO "run" VALUES('r-00001500000000000000z08y4b',1,'Going on','open','on','{"allow":[],"arm_within":10000000,"check_limit":600000000,"check_tries":3,"checkpoint_after":1200000000,"checkpoint_jitter":60000000,"dead_man":0,"dead_man_after":600000000,"dead_man_apart":1800000000,"dead_man_ask":300000000,"delivery_end":86400000000,"deny":[],"fault_recoveries":3,"fresh_sessions":3,"idle_delay":0,"interrupt_grace":10000000,"lease_life":7200000000,"limit_buffer":60000000,"limit_jitter":30000000,"limit_lead":120000000,"limit_tries":12,"limit_unknown":[300000000,900000000,1800000000,3600000000],"live_spacing":900000000,"look_at_living_turn":2000000,"max_attempts":null,"max_cost":null,"max_live":null,"max_tokens":null,"merge_facts":30000000,"merge_rate":4,"merge_window":3600000000,"message_bytes":65536,"network_fresh":30000000,"news_spacing":300000000,"objective_bytes":262144,"overload_retry":[30000000,120000000,300000000,900000000],"overload_tries":12,"page_fresh":30000000,"pending_life":14400000000,"pending_tasks":48,"permission_wait":1800000000,"prompt_bytes":327680,"ready_grace":1800000000,"reconcile_age":120000000,"reconcile_separation":3000000,"reconcile_tries":3,"report_bytes":32768,"retry_unsent":[5000000,15000000,60000000,300000000],"reviews":10,"run_attempts":null,"run_cost":null,"run_live":null,"run_tokens":null,"self_progress_streak":3,"slot_rest":600000000,"spawn_rate":30,"spawn_window":600000000,"stall_pause":6,"stall_warn":3,"suspect_hard":600000000,"suspect_network":180000000,"suspect_page":120000000,"suspect_tool":180000000,"turn_limit":14400000000}',NULL,1772366460000000,NULL);
CREATE TABLE sample (
	id TEXT NOT NULL,
	task_id TEXT NOT NULL,
	fence TEXT NOT NULL,
	members TEXT NOT NULL,
	made_at INTEGER NOT NULL,
	PRIMARY KEY (id),
	FOREIGN KEY(task_id) REFERENCES task (id)
)
 STRICT;
INSERT INTO "sample" VALUES('n-00000c00000000000000z02wsm','t-00000300000000000000z00q6d','a9a469cc1deda1b9d4c4a1f8a75f5bfffc29209ea72bc00225b4b64be402b51d','["conversation played:t-00000300000000000000z00q6d/1 lease 1","last none","task t-00000300000000000000z00q6d active new"]',1772366400000000);
INSERT INTO "sample" VALUES('n-00000n00000000000000z052cv','t-00000300000000000000z00q6d','999dbf0efe116c27f3c5c735eaddd78fcc5c4cde9d099d0da685bd2341022f8a','["conversation played:t-00000300000000000000z00q6d/1 lease 1","last a-00000a00000000000000z02dap turn_end","task t-00000300000000000000z00q6d active working"]',1772366400000000);
INSERT INTO "sample" VALUES('n-00001100000000000000z07z6f','t-00000r00000000000000z05sk8','6bcc6fcb596de39f7361ec7811d7ef8e20c3087f4562935807e6e13cab57344b','["conversation played:t-00000r00000000000000z05sk8/1 lease 1","last none","task t-00000r00000000000000z05sk8 active new"]',1772366400000000);
INSERT INTO "sample" VALUES('n-00001f00000000000000z0bbf1','t-00001600000000000000z095vt','d708a2ebc4fb62339b450b1d239ff0d9e0827f6b3103d7999776a6114f9d09ab','["conversation played:t-00001600000000000000z095vt/1 lease 1","last none","task t-00001600000000000000z095vt active new"]',1772366460000000);
CREATE TABLE sighting (
	id TEXT NOT NULL,
	task_id TEXT NOT NULL,
	subject TEXT NOT NULL,
	source TEXT NOT NULL,
	rank INTEGER NOT NULL,
	seen_at INTEGER NOT NULL,
	made_at INTEGER NOT NULL,
	digest TEXT NOT NULL,
	facts TEXT NOT NULL,
	PRIMARY KEY (id),
	CONSTRAINT sighting_ranked CHECK (rank BETWEEN 1 AND 5),
	FOREIGN KEY(task_id) REFERENCES task (id)
)
 STRICT;
INSERT INTO "sighting" VALUES('o-00000f00000000000000z03m01','t-00000300000000000000z00q6d','/the-place-it-was-made','still',3,1772366400000000,1772366400000000,'5461c412201641f1cf3a8a4db04f169c79c738d625ec1ce663eecd0554b396e6','[["directory","git"]]');
INSERT INTO "sighting" VALUES('o-00001400000000000000z08pcw','t-00000r00000000000000z05sk8','/the-place-it-was-made','still',3,1772366400000000,1772366400000000,'5461c412201641f1cf3a8a4db04f169c79c738d625ec1ce663eecd0554b396e6','[["directory","git"]]');
CREATE TABLE task (
	id TEXT NOT NULL,
	revision INTEGER NOT NULL,
	run_id TEXT NOT NULL,
	title TEXT NOT NULL,
	objective TEXT NOT NULL,
	cwd TEXT NOT NULL,
	agent TEXT NOT NULL,
	acceptance TEXT NOT NULL,
	state TEXT NOT NULL,
	created_at INTEGER NOT NULL,
	auto_resume TEXT,
	max_attempts INTEGER,
	parent TEXT,
	started_at INTEGER,
	ended_at INTEGER,
	disposition_reason TEXT,
	disposition_source TEXT,
	disposition_prior_state TEXT,
	disposition_reference TEXT,
	disposition_verified INTEGER,
	claim_evidence TEXT,
	claim_summary TEXT,
	claim_attempt TEXT,
	claim_made_at INTEGER,
	claim_tries INTEGER,
	standing TEXT NOT NULL,
	standing_reason TEXT,
	paused_at INTEGER,
	paused_by TEXT,
	stalled_at INTEGER,
	progress_cursor TEXT,
	progress_head TEXT,
	progress_at INTEGER,
	progress_without INTEGER NOT NULL,
	progress_streak INTEGER NOT NULL,
	progress_line TEXT,
	progress_reason TEXT,
	attempts INTEGER NOT NULL,
	unsent_in_row INTEGER NOT NULL,
	faults INTEGER NOT NULL,
	lease_number INTEGER NOT NULL,
	active_since_report INTEGER NOT NULL,
	checkpoints INTEGER NOT NULL,
	last_served_at INTEGER,
	waiting_since INTEGER,
	look_at INTEGER,
	tools TEXT NOT NULL,
	health_value TEXT,
	health_confidence TEXT,
	health_row TEXT,
	health_why TEXT,
	health_mend TEXT,
	health_since INTEGER,
	steered_at INTEGER,
	informed INTEGER NOT NULL,
	informed_at INTEGER,
	told_at INTEGER,
	max_live INTEGER,
	max_tokens INTEGER,
	max_cost INTEGER,
	live_time INTEGER NOT NULL,
	tokens INTEGER NOT NULL,
	cost INTEGER NOT NULL,
	currency TEXT,
	spawned_by TEXT,
	playbook TEXT,
	delivery TEXT,
	auto_close INTEGER NOT NULL,
	unattended INTEGER NOT NULL,
	slot_from TEXT,
	queued_at INTEGER,
	ready_at INTEGER,
	ready_note TEXT,
	account TEXT,
	model TEXT,
	overloads INTEGER NOT NULL,
	fresh_sessions INTEGER NOT NULL,
	session_over TEXT,
	PRIMARY KEY (id),
	CONSTRAINT task_ended_at CHECK ((state IN ('cancelled', 'completed', 'failed')) = (ended_at IS NOT NULL)),
	CONSTRAINT task_disposition CHECK ((state IN ('cancelled', 'completed', 'failed')) = (disposition_reason IS NOT NULL)),
	CONSTRAINT task_disposition_whole CHECK ((disposition_reason IS NULL) = (disposition_source IS NULL)),
	CONSTRAINT task_started_at CHECK (NOT (state IN ('active')) OR (started_at IS NOT NULL)),
	CONSTRAINT task_paused_by_somebody CHECK ((paused_at IS NULL) = (paused_by IS NULL)),
	CONSTRAINT task_in_line_is_pending CHECK (NOT (queued_at IS NOT NULL) OR (state IN ('pending'))),
	CONSTRAINT task_ready_whole CHECK ((ready_at IS NULL) = (ready_note IS NULL)),
	CONSTRAINT task_state_known CHECK (state IN ('active', 'cancelled', 'completed', 'failed', 'pending')),
	CONSTRAINT task_revision_counts CHECK (revision >= 1),
	FOREIGN KEY(run_id) REFERENCES run (id),
	FOREIGN KEY(objective) REFERENCES text (id),
	FOREIGN KEY(parent) REFERENCES task (id),
	FOREIGN KEY(slot_from) REFERENCES task (id)
)
 STRICT;
INSERT INTO "task" VALUES('t-00000300000000000000z00q6d',11,'r-00000200000000000000z00fey','Ended','x-00000400000000000000z00yxw','/the-place-it-was-made','{"adapter":"played","argv":["agent","--go"],"env":[],"on":null,"resumable":1}','{"argv":[],"kind":"none","path":null}','completed',1772366400000000,NULL,NULL,NULL,1772366400000000,1772366400000000,'swept','agent','active','it is clean',0,NULL,NULL,NULL,NULL,NULL,'complete','swept',NULL,NULL,NULL,'0000000000000000000000000000000000000000000000000000000000000000','aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa',NULL,1,0,NULL,NULL,2,0,0,1,0,0,1772366400000000,1772366400000000,NULL,'[]','completed','high','1','the task is completed','nothing; it is quiet',1772366400000000,NULL,0,NULL,NULL,NULL,NULL,NULL,0,0,0,NULL,NULL,NULL,NULL,0,0,NULL,NULL,NULL,NULL,NULL,NULL,0,0,NULL);
INSERT INTO "task" VALUES('t-00000r00000000000000z05sk8',8,'r-00000q00000000000000z05hvs','Waiting','x-00000s00000000000000z061aq','/the-place-it-was-made','{"adapter":"played","argv":["agent","--go"],"env":[],"on":null,"resumable":1}','{"argv":[],"kind":"none","path":null}','active',1772366400000000,NULL,NULL,NULL,1772366400000000,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'blocked','a person: which colour?',NULL,NULL,NULL,'0000000000000000000000000000000000000000000000000000000000000000','aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa',NULL,1,0,NULL,NULL,1,0,0,1,0,0,1772366400000000,1772366400000000,1772367000000000,'[]','waiting','high','1b','it waits (human): a person: which colour?','nothing; it is quiet',1772366400000000,NULL,0,NULL,NULL,NULL,NULL,NULL,0,0,0,NULL,NULL,NULL,NULL,0,0,NULL,NULL,NULL,NULL,NULL,NULL,0,0,NULL);
INSERT INTO "task" VALUES('t-00001600000000000000z095vt',8,'r-00001500000000000000z08y4b','Going on','x-00001700000000000000z09dk9','/the-place-it-was-made','{"adapter":"played","argv":["agent","--go"],"env":[],"on":null,"resumable":1}','{"argv":[],"kind":"none","path":null}','active',1772366460000000,NULL,NULL,NULL,1772366460000000,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'new',NULL,NULL,NULL,NULL,'0000000000000000000000000000000000000000000000000000000000000000','aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa',NULL,0,0,NULL,NULL,1,0,0,1,0,0,1772366460000000,NULL,1772380870000000,'[]','running','high','5','its turn is under way','nothing; it is quiet',1772366460000000,NULL,0,NULL,NULL,NULL,NULL,NULL,0,0,0,NULL,NULL,NULL,NULL,0,0,NULL,NULL,NULL,NULL,NULL,NULL,0,0,NULL);
CREATE TABLE text (
	id TEXT NOT NULL,
	kind TEXT NOT NULL,
	task_id TEXT,
	body TEXT,
	digest TEXT NOT NULL,
	created_at INTEGER NOT NULL,
	PRIMARY KEY (id),
	CONSTRAINT text_digest_is_sha256 CHECK (length(digest) = 64)
)
 STRICT;
INSERT INTO "text" VALUES('x-00000400000000000000z00yxw','objective','t-00000300000000000000z00q6d','Sweep the floor','4d335517bff2fe292d6f428ca1824e27d6f9a1a88ad8559083bbd76ba1ef1e2d',1772366400000000);
INSERT INTO "text" VALUES('x-00000900000000000000z025k7','prompt','t-00000300000000000000z00q6d','[tenuto:c-00000700000000000000z01p49]

You are starting a piece of work that will take as many turns as it needs. This is the assignment:

Sweep the floor

Look at the present state of things before you change anything. Work in steps that can each be kept: when a step is done, make it durable (a commit, a file, a record) before you begin the next, so that whoever reads the state later can tell what was done.

End the turn with exactly one block of this form, filled in. Choose one status; leave out lines that do not apply.

```tenuto
status: working | complete | blocked
summary: one line
progress: what is durable now (commit, file, issue)
next: the one next step
needs: what is missing and from whom (with blocked)
evidence: a reference that proves completion (with complete)
```
','7a6d5ca9e0697f3498dd15f325d193b2faa3072a5380d0355b1a06fd1bcaef6b',1772366400000000);
INSERT INTO "text" VALUES('x-00000j00000000000000z04b6e','prompt','t-00000300000000000000z00q6d','[tenuto:c-00000g00000000000000z03vqg]

Go on with the same assignment.

Last durable progress: (none recorded)
Next step you named: (none recorded)

If that step is done already, take the one after it.

End the turn with exactly one block of this form, filled in. Choose one status; leave out lines that do not apply.

```tenuto
status: working | complete | blocked
summary: one line
progress: what is durable now (commit, file, issue)
next: the one next step
needs: what is missing and from whom (with blocked)
evidence: a reference that proves completion (with complete)
```
','5d555e0116f4ec45ed3fc333aedc541a890900aa82225eb17fb3ad8ed5db781f',1772366400000000);
INSERT INTO "text" VALUES('x-00000s00000000000000z061aq','objective','t-00000r00000000000000z05sk8','Paint the door','c3ceac416d67e76482811fea262c80d1e151610470e225d7f10579326867e68a',1772366400000000);
INSERT INTO "text" VALUES('x-00000y00000000000000z07802','prompt','t-00000r00000000000000z05sk8','[tenuto:c-00000w00000000000000z06rh4]

You are starting a piece of work that will take as many turns as it needs. This is the assignment:

Paint the door

Look at the present state of things before you change anything. Work in steps that can each be kept: when a step is done, make it durable (a commit, a file, a record) before you begin the next, so that whoever reads the state later can tell what was done.

End the turn with exactly one block of this form, filled in. Choose one status; leave out lines that do not apply.

```tenuto
status: working | complete | blocked
summary: one line
progress: what is durable now (commit, file, issue)
next: the one next step
needs: what is missing and from whom (with blocked)
evidence: a reference that proves completion (with complete)
```
','8000f5ee1ce9acd4e82f4fd8521e6642b2dcad11623ecf5ed5925f85ed74bf14',1772366400000000);
INSERT INTO "text" VALUES('x-00001700000000000000z09dk9','objective','t-00001600000000000000z095vt','Mend the roof','fba839701156822fdca88db4a3e9336ea3af332e698ef4f016d83011fa4639a7',1772366460000000);
INSERT INTO "text" VALUES('x-00001c00000000000000z0am8m','prompt','t-00001600000000000000z095vt','[tenuto:c-00001a00000000000000z0a4sp]

You are starting a piece of work that will take as many turns as it needs. This is the assignment:

Mend the roof

Look at the present state of things before you change anything. Work in steps that can each be kept: when a step is done, make it durable (a commit, a file, a record) before you begin the next, so that whoever reads the state later can tell what was done.

End the turn with exactly one block of this form, filled in. Choose one status; leave out lines that do not apply.

```tenuto
status: working | complete | blocked
summary: one line
progress: what is durable now (commit, file, issue)
next: the one next step
needs: what is missing and from whom (with blocked)
evidence: a reference that proves completion (with complete)
```
','bf2f770538d5de2a8a5a33c7a298d57fdad1b2b8b9da6c05557fb8daeccff752',1772366460000000);
INSERT INTO "text" VALUES('x-00001g00000000000000z0bk6g','message','t-00001600000000000000z095vt','Mind the gutter.','9a91d5846499f29f04e63e368dc54d0bd89fd9dd36cfe1949cc6482ed5a3bcd7',1772366460000000);
CREATE TABLE token (
	id TEXT NOT NULL,
	revision INTEGER NOT NULL,
	digest TEXT NOT NULL,
	role TEXT NOT NULL,
	task_id TEXT,
	lease_number INTEGER,
	created_at INTEGER NOT NULL,
	revoked_at INTEGER,
	name TEXT,
	expires_at INTEGER,
	PRIMARY KEY (id),
	CONSTRAINT token_digest_is_sha256 CHECK (length(digest) = 64),
	CONSTRAINT token_revision_counts CHECK (revision >= 1),
	FOREIGN KEY(task_id) REFERENCES task (id)
)
 STRICT;
INSERT INTO "token" VALUES('y-00000b00000000000000z02n25',2,'643a6691e9e05881c808ed01b3af704216135732b9592d36b7720c5e9bc307a4','agent','t-00000300000000000000z00q6d',1,1772366400000000,1772366400000000,NULL,NULL);
INSERT INTO "token" VALUES('y-00000m00000000000000z04tnc',2,'84823fdbebe01852104f2681893989f9f9f1f61e67507152204f42548f60c478','agent','t-00000300000000000000z00q6d',1,1772366400000000,1772366400000000,NULL,NULL);
INSERT INTO "token" VALUES('y-00001000000000000000z07qf0',1,'0048125c4f3d2fca27e577ab189e3eeb30f0eb8d758f9eb2f45107ad953aea9b','agent','t-00000r00000000000000z05sk8',1,1772366400000000,NULL,NULL,NULL);
INSERT INTO "token" VALUES('y-00001e00000000000000z0b3qj',1,'e97ff4f09b6e533c92c2de8732b86c6263e8999610e866382de0a5ec31f54bc1','agent','t-00001600000000000000z095vt',1,1772366460000000,NULL,NULL,NULL);
CREATE TABLE usagelimit (
	id TEXT NOT NULL,
	revision INTEGER NOT NULL,
	account TEXT NOT NULL,
	name TEXT NOT NULL,
	text TEXT NOT NULL,
	first_met_at INTEGER NOT NULL,
	met_at INTEGER NOT NULL,
	met_by TEXT NOT NULL,
	met INTEGER NOT NULL,
	until INTEGER NOT NULL,
	model TEXT,
	resets_at INTEGER,
	closed_at INTEGER,
	closed_by TEXT,
	PRIMARY KEY (id),
	CONSTRAINT usagelimit_closed_by_something CHECK ((closed_at IS NULL) = (closed_by IS NULL)),
	CONSTRAINT usagelimit_counts CHECK (met >= 1),
	CONSTRAINT usagelimit_revision_counts CHECK (revision >= 1),
	FOREIGN KEY(met_by) REFERENCES task (id)
)
 STRICT;
CREATE TABLE wait (
	id TEXT NOT NULL,
	revision INTEGER NOT NULL,
	task_id TEXT NOT NULL,
	kind TEXT NOT NULL,
	question TEXT NOT NULL,
	opened_at INTEGER NOT NULL,
	subject TEXT,
	until INTEGER,
	attempt_id TEXT,
	closed_at INTEGER,
	closed_by TEXT,
	answer TEXT,
	PRIMARY KEY (id),
	CONSTRAINT wait_closed_by_something CHECK ((closed_at IS NULL) = (closed_by IS NULL)),
	CONSTRAINT wait_revision_counts CHECK (revision >= 1),
	FOREIGN KEY(task_id) REFERENCES task (id)
)
 STRICT;
INSERT INTO "wait" VALUES('w-00001300000000000000z08end',1,'t-00000r00000000000000z05sk8','human','a person: which colour?',1772366400000000,NULL,NULL,'a-00000z00000000000000z07fqh',NULL,NULL,NULL);
CREATE TABLE wake (
	id TEXT NOT NULL,
	revision INTEGER NOT NULL,
	task_id TEXT NOT NULL,
	kind TEXT NOT NULL,
	reason TEXT NOT NULL,
	not_before INTEGER NOT NULL,
	created_at INTEGER NOT NULL,
	anyway INTEGER NOT NULL,
	asked_by TEXT,
	consumed_at INTEGER,
	consumed_by TEXT,
	PRIMARY KEY (id),
	CONSTRAINT wake_consumed CHECK (NOT (consumed_by IS NOT NULL) OR (consumed_at IS NOT NULL)),
	CONSTRAINT wake_revision_counts CHECK (revision >= 1),
	FOREIGN KEY(task_id) REFERENCES task (id)
)
 STRICT;
INSERT INTO "wake" VALUES('k-00000500000000000000z016nb',2,'t-00000300000000000000z00q6d','event','the task was made',1772366400000000,1772366400000000,0,NULL,1772366400000000,'a-00000a00000000000000z02dap');
INSERT INTO "wake" VALUES('k-00000e00000000000000z03c8j',2,'t-00000300000000000000z00q6d','idle','the turn ended and there is more to do',1772366400000000,1772366400000000,0,NULL,1772366400000000,'a-00000k00000000000000z04jxx');
INSERT INTO "wake" VALUES('k-00000t00000000000000z06926',2,'t-00000r00000000000000z05sk8','event','the task was made',1772366400000000,1772366400000000,0,NULL,1772366400000000,'a-00000z00000000000000z07fqh');
INSERT INTO "wake" VALUES('k-00001800000000000000z09nar',2,'t-00001600000000000000z095vt','event','the task was made',1772366460000000,1772366460000000,0,NULL,1772366460000000,'a-00001d00000000000000z0aw03');
CREATE TABLE worktree (
	id TEXT NOT NULL,
	revision INTEGER NOT NULL,
	task_id TEXT NOT NULL,
	chain_id TEXT,
	repository TEXT NOT NULL,
	path TEXT NOT NULL,
	branch TEXT NOT NULL,
	base TEXT NOT NULL,
	state TEXT NOT NULL,
	created_at INTEGER NOT NULL,
	command_id TEXT,
	begun_at_commit TEXT,
	reason TEXT,
	ended_at INTEGER,
	PRIMARY KEY (id),
	CONSTRAINT worktree_ended_at CHECK ((state IN ('failed', 'gone')) = (ended_at IS NOT NULL)),
	CONSTRAINT worktree_begun CHECK (NOT (state IN ('ready')) OR (begun_at_commit IS NOT NULL)),
	CONSTRAINT worktree_state_known CHECK (state IN ('failed', 'gone', 'kept', 'planned', 'ready')),
	CONSTRAINT worktree_revision_counts CHECK (revision >= 1),
	FOREIGN KEY(task_id) REFERENCES task (id),
	FOREIGN KEY(chain_id) REFERENCES chain (id),
	FOREIGN KEY(command_id) REFERENCES command (id)
)
 STRICT;
CREATE INDEX event_of_run ON event (run_id, n) WHERE run_id IS NOT NULL;
CREATE INDEX event_of_task ON event (task_id, n) WHERE task_id IS NOT NULL;
CREATE INDEX text_of_digest ON text (digest) WHERE kind IN ('objective');
CREATE INDEX chain_looked_at ON chain (look_at, id) WHERE look_at IS NOT NULL;
CREATE INDEX task_due ON task (look_at, id) WHERE look_at IS NOT NULL;
CREATE INDEX task_in_line ON task (created_at, id) WHERE queued_at IS NOT NULL;
CREATE INDEX task_of_parent ON task (parent, id) WHERE parent IS NOT NULL;
CREATE INDEX task_of_run ON task (run_id, id);
CREATE INDEX task_spawned ON task (spawned_by, created_at) WHERE spawned_by IS NOT NULL;
CREATE INDEX task_state ON task (state, id);
CREATE INDEX task_unfinished ON task (run_id, id) WHERE state IN ('active', 'pending');
CREATE INDEX conversation_of_task ON conversation (task_id);
CREATE UNIQUE INDEX one_active_conversation_per_identity ON conversation (identity) WHERE state IN ('active');
CREATE UNIQUE INDEX one_active_conversation_per_task ON conversation (task_id) WHERE state IN ('active');
CREATE UNIQUE INDEX one_mandate_per_chain ON mandate (chain_id);
CREATE UNIQUE INDEX one_phase_per_number ON phase (chain_id, number);
CREATE UNIQUE INDEX one_phase_per_unit ON phase (chain_id, unit);
CREATE INDEX report_of_task ON report (task_id, id);
CREATE INDEX sample_of_task ON sample (task_id, made_at);
CREATE INDEX sighting_of_subject ON sighting (task_id, subject, id);
CREATE INDEX sighting_of_task ON sighting (task_id, id);
CREATE UNIQUE INDEX one_token_per_digest ON token (digest);
CREATE INDEX token_named ON token (id) WHERE name IS NOT NULL;
CREATE INDEX token_of_task ON token (task_id, id) WHERE revoked_at IS NULL;
CREATE UNIQUE INDEX one_limit_per_account ON usagelimit (account, name) WHERE closed_at IS NULL;
CREATE INDEX usagelimit_open ON usagelimit (id) WHERE closed_at IS NULL;
CREATE INDEX wait_of_task ON wait (task_id, id);
CREATE INDEX wait_open ON wait (task_id, id) WHERE closed_at IS NULL;
CREATE INDEX every_wake_of_task ON wake (task_id, id);
CREATE UNIQUE INDEX one_pending_wake_per_kind ON wake (task_id, kind) WHERE consumed_at IS NULL;
CREATE UNIQUE INDEX one_attempt_per_number ON attempt (task_id, number);
CREATE UNIQUE INDEX one_live_attempt_per_task ON attempt (task_id) WHERE state IN ('live');
CREATE INDEX command_of_attempt ON command (attempt_id, id);
CREATE INDEX command_of_task ON command (task_id, id);
CREATE INDEX command_open ON command (task_id) WHERE state IN ('ambiguous', 'armed', 'submitted');
CREATE INDEX link_not_done ON link (chain_id, unit) WHERE outcome IS NULL OR outcome <> 'done';
CREATE UNIQUE INDEX one_link_per_cursor ON link (chain_id, "key");
CREATE UNIQUE INDEX one_link_per_position ON link (chain_id, position);
CREATE UNIQUE INDEX one_link_per_task ON link (task_id);
CREATE UNIQUE INDEX one_successor_per_task ON link (chain_id, predecessor);
CREATE UNIQUE INDEX one_task_per_unit ON link (place, unit) WHERE recorded_at IS NULL;
CREATE INDEX message_of_task ON message (task_id, id);
CREATE INDEX message_undelivered ON message (task_id, id) WHERE state IN ('ambiguous', 'carried', 'deferred', 'retry_wait');
CREATE UNIQUE INDEX one_question_per_request ON permission (command_id, request);
CREATE INDEX permission_of_task ON permission (task_id, id);
CREATE INDEX permission_open ON permission (task_id, id) WHERE closed_at IS NULL;
CREATE UNIQUE INDEX one_open_proposal_per_chain ON proposal (chain_id) WHERE state IN ('open');
CREATE UNIQUE INDEX one_proposal_per_task ON proposal (task_id);
CREATE INDEX proposal_of_chain ON proposal (chain_id, id);
CREATE UNIQUE INDEX one_worktree_per_branch ON worktree (repository, branch);
CREATE UNIQUE INDEX one_worktree_per_path ON worktree (path);
CREATE UNIQUE INDEX one_worktree_per_task ON worktree (task_id);
CREATE INDEX worktree_of_chain ON worktree (chain_id, id) WHERE chain_id IS NOT NULL;
CREATE INDEX worktree_there ON worktree (id) WHERE state IN ('kept', 'ready');
CREATE UNIQUE INDEX one_review_at_a_time ON review (proposal_id) WHERE verdict IS NULL;
CREATE UNIQUE INDEX one_review_per_number ON review (proposal_id, number);
CREATE UNIQUE INDEX one_review_per_task ON review (task_id);
CREATE TRIGGER task_moves BEFORE UPDATE OF state ON task FOR EACH ROW
WHEN NEW.state <> OLD.state AND NOT ((OLD.state = 'active' AND NEW.state = 'cancelled') OR (OLD.state = 'active' AND NEW.state = 'completed') OR (OLD.state = 'active' AND NEW.state = 'failed') OR (OLD.state = 'active' AND NEW.state = 'pending') OR (OLD.state = 'pending' AND NEW.state = 'active') OR (OLD.state = 'pending' AND NEW.state = 'cancelled') OR (OLD.state = 'pending' AND NEW.state = 'completed') OR (OLD.state = 'pending' AND NEW.state = 'failed'))
BEGIN SELECT RAISE(ABORT, 'task: no such move'); END;
CREATE TRIGGER run_moves BEFORE UPDATE OF state ON run FOR EACH ROW
WHEN NEW.state <> OLD.state AND NOT ((OLD.state = 'open' AND NEW.state = 'stopped'))
BEGIN SELECT RAISE(ABORT, 'run: no such move'); END;
CREATE TRIGGER attempt_moves BEFORE UPDATE OF state ON attempt FOR EACH ROW
WHEN NEW.state <> OLD.state AND NOT ((OLD.state = 'live' AND NEW.state = 'ended') OR (OLD.state = 'scheduled' AND NEW.state = 'cancelled') OR (OLD.state = 'scheduled' AND NEW.state = 'live'))
BEGIN SELECT RAISE(ABORT, 'attempt: no such move'); END;
CREATE TRIGGER command_moves BEFORE UPDATE OF state ON command FOR EACH ROW
WHEN NEW.state <> OLD.state AND NOT ((OLD.state = 'ambiguous' AND NEW.state = 'acknowledged') OR (OLD.state = 'ambiguous' AND NEW.state = 'failed') OR (OLD.state = 'ambiguous' AND NEW.state = 'released') OR (OLD.state = 'armed' AND NEW.state = 'ambiguous') OR (OLD.state = 'armed' AND NEW.state = 'failed') OR (OLD.state = 'armed' AND NEW.state = 'submitted') OR (OLD.state = 'queued' AND NEW.state = 'armed') OR (OLD.state = 'queued' AND NEW.state = 'cancelled') OR (OLD.state = 'queued' AND NEW.state = 'expired') OR (OLD.state = 'released' AND NEW.state = 'acknowledged') OR (OLD.state = 'submitted' AND NEW.state = 'acknowledged') OR (OLD.state = 'submitted' AND NEW.state = 'ambiguous') OR (OLD.state = 'submitted' AND NEW.state = 'failed'))
BEGIN SELECT RAISE(ABORT, 'command: no such move'); END;
CREATE TRIGGER conversation_moves BEFORE UPDATE OF state ON conversation FOR EACH ROW
WHEN NEW.state <> OLD.state AND NOT ((OLD.state = 'active' AND NEW.state = 'abandoned') OR (OLD.state = 'active' AND NEW.state = 'active') OR (OLD.state = 'active' AND NEW.state = 'ended') OR (OLD.state = 'active' AND NEW.state = 'superseded') OR (OLD.state = 'candidate' AND NEW.state = 'abandoned') OR (OLD.state = 'candidate' AND NEW.state = 'active'))
BEGIN SELECT RAISE(ABORT, 'conversation: no such move'); END;
CREATE TRIGGER message_moves BEFORE UPDATE OF state ON message FOR EACH ROW
WHEN NEW.state <> OLD.state AND NOT ((OLD.state = 'ambiguous' AND NEW.state = 'deferred') OR (OLD.state = 'ambiguous' AND NEW.state = 'delivered') OR (OLD.state = 'ambiguous' AND NEW.state = 'dropped') OR (OLD.state = 'carried' AND NEW.state = 'ambiguous') OR (OLD.state = 'carried' AND NEW.state = 'deferred') OR (OLD.state = 'carried' AND NEW.state = 'delivered') OR (OLD.state = 'carried' AND NEW.state = 'retry_wait') OR (OLD.state = 'deferred' AND NEW.state = 'carried') OR (OLD.state = 'deferred' AND NEW.state = 'dropped') OR (OLD.state = 'recorded' AND NEW.state = 'deferred') OR (OLD.state = 'retry_wait' AND NEW.state = 'carried') OR (OLD.state = 'retry_wait' AND NEW.state = 'deferred') OR (OLD.state = 'retry_wait' AND NEW.state = 'dropped'))
BEGIN SELECT RAISE(ABORT, 'message: no such move'); END;
CREATE TRIGGER chain_moves BEFORE UPDATE OF state ON chain FOR EACH ROW
WHEN NEW.state <> OLD.state AND NOT ((OLD.state = 'open' AND NEW.state = 'capped') OR (OLD.state = 'open' AND NEW.state = 'complete') OR (OLD.state = 'open' AND NEW.state = 'stopped'))
BEGIN SELECT RAISE(ABORT, 'chain: no such move'); END;
CREATE TRIGGER proposal_moves BEFORE UPDATE OF state ON proposal FOR EACH ROW
WHEN NEW.state <> OLD.state AND NOT ((OLD.state = 'open' AND NEW.state = 'merged') OR (OLD.state = 'open' AND NEW.state = 'turned_down'))
BEGIN SELECT RAISE(ABORT, 'proposal: no such move'); END;
CREATE TRIGGER worktree_moves BEFORE UPDATE OF state ON worktree FOR EACH ROW
WHEN NEW.state <> OLD.state AND NOT ((OLD.state = 'kept' AND NEW.state = 'gone') OR (OLD.state = 'kept' AND NEW.state = 'kept') OR (OLD.state = 'planned' AND NEW.state = 'failed') OR (OLD.state = 'planned' AND NEW.state = 'ready') OR (OLD.state = 'ready' AND NEW.state = 'gone') OR (OLD.state = 'ready' AND NEW.state = 'kept'))
BEGIN SELECT RAISE(ABORT, 'worktree: no such move'); END;
CREATE TRIGGER phase_moves BEFORE UPDATE OF state ON phase FOR EACH ROW
WHEN NEW.state <> OLD.state AND NOT ((OLD.state = 'closed' AND NEW.state = 'merged') OR (OLD.state = 'closed' AND NEW.state = 'open') OR (OLD.state = 'closed' AND NEW.state = 'reverted') OR (OLD.state = 'merged' AND NEW.state = 'open') OR (OLD.state = 'merged' AND NEW.state = 'reverted') OR (OLD.state = 'open' AND NEW.state = 'closed') OR (OLD.state = 'open' AND NEW.state = 'merged') OR (OLD.state = 'open' AND NEW.state = 'reverted') OR (OLD.state = 'reverted' AND NEW.state = 'merged') OR (OLD.state = 'reverted' AND NEW.state = 'open'))
BEGIN SELECT RAISE(ABORT, 'phase: no such move'); END;
CREATE TRIGGER event_stays BEFORE UPDATE ON event FOR EACH ROW
WHEN 1 = 1
BEGIN SELECT RAISE(ABORT, 'event: what happened is not rewritten'); END;
COMMIT;
