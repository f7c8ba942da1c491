/* How a command crosses the gap between a registry and a world in which anything may die.
 *
 * Two supervisors, a host for every hand-over, an agent for every turn that began. Anybody may be killed between any
 * two steps (CRASHES times in all), and a supervisor that only stands still may be taken for dead (TAKEOVERS times).
 * What is one step here is one step there: a commit, an exclusive link, a look at one thing.
 *
 * Two variants that must fail. -DHASTY: a crash is taken to mean that it did not happen. -DTRUSTING: nobody was
 * there while the journal was empty, so nobody is there when it is read a moment later.
 */

#define COMMANDS 2      /* turns of one task, one after the other */
#ifndef CRASHES
#define CRASHES 1
#endif
#ifndef TAKEOVERS
#define TAKEOVERS 1
#endif

mtype:row     = { UNARMED, ARMED, ACKNOWLEDGED, FAILED };
mtype:journal = { EMPTY, REVOKED, CLAIMED, BEGUN, ACCEPTED, ENDED };

/* The registry: every change of it is fenced by the epoch. */
mtype:row row[COMMANDS];
bit over[COMMANDS];             /* the attempt has ended, however */
byte epoch = 0;
byte holder = 0;                /* 1 or 2; 0: nobody */
bit holder_dead = 1;

/* The executor's side. */
mtype:journal journal[COMMANDS];
byte highest = 0;               /* the highest epoch any host has claimed under */
bit host[COMMANDS];
bit agent[COMMANDS];

/* What only the proof sees. */
byte effects[COMMANDS];
byte crashes = CRASHES;
byte takeovers = TAKEOVERS;
bit done = 0;

#define others_act(c) (agent[1 - (c)])  /* there are two commands */
#define may_crash     (crashes > 0)

proctype Host(byte c; byte mine) {
    if
    :: d_step { journal[c] == EMPTY && mine >= highest -> journal[c] = CLAIMED; highest = mine }
    :: d_step { !(journal[c] == EMPTY && mine >= highest) -> host[c] = 0 } goto gone
    :: d_step { may_crash -> crashes--; host[c] = 0 } goto gone
    fi;
    if
    :: journal[c] = BEGUN
    :: d_step { may_crash -> crashes--; host[c] = 0 } goto gone
    fi;
    if
    :: d_step {
           effects[c]++;
           assert(effects[c] == 1);             /* at most one effect for a command */
           assert(row[c] != FAILED);            /* what was said not to have happened does not happen */
           assert(!others_act(c));              /* no second agent while the first may live */
           agent[c] = 1
       }
    :: d_step { may_crash -> crashes--; host[c] = 0 } goto gone
    fi;
    if
    :: journal[c] = ACCEPTED
    :: d_step { may_crash -> crashes--; host[c] = 0 } goto gone
    fi;
    if
    :: d_step { !agent[c] -> journal[c] = ENDED }
    :: d_step { may_crash -> crashes--; host[c] = 0 } goto gone
    fi;
    host[c] = 0;
gone:
    skip
}

/* An agent acts until it ends or is killed, whoever is left to see it. */
active proctype Agents() {
    do
    :: atomic { agent[0] -> agent[0] = 0 }
    :: atomic { COMMANDS > 1 && agent[1] -> agent[1] = 0 }
    :: done && !agent[0] && !agent[COMMANDS - 1] -> break
    od
}

/* One commit under the epoch `mine`; a supervisor that does not lead any more writes nothing. */
#define COMMIT(change) \
    if \
    :: d_step { epoch == mine -> change } \
    :: epoch != mine -> goto deposed \
    :: d_step { may_crash -> crashes--; if :: holder == me -> holder_dead = 1 :: else fi } goto deposed \
    fi

#define DIE d_step { may_crash -> crashes--; if :: holder == me -> holder_dead = 1 :: else fi }

proctype Supervisor(byte me) {
    byte mine = 0;
    byte c;
    bit launched;               /* it knows that it started this command's host */
    bit host_there;
    mtype:journal first;
    mtype:journal said;

deposed:
    launched = 0;
    if
    :: done -> goto finished
    :: d_step { !done && (holder_dead || (takeovers > 0 && holder != me)) ->
           if
           :: !holder_dead -> takeovers--
           :: else
           fi;
           epoch++; mine = epoch; holder = me; holder_dead = 0 }
    fi;

turn:
    skip;
    /* decide: the first command that has not come to its end */
    d_step {
        c = 0; first = EMPTY; said = EMPTY; host_there = 0;     /* nothing is remembered from one look to the next */
        do
        :: c < COMMANDS && over[c] -> c++
        :: else -> break
        od
    }
    if
    :: c == COMMANDS -> done = 1; goto finished
    :: c < COMMANDS && row[c] == UNARMED -> goto arm
    :: c < COMMANDS && row[c] != UNARMED -> goto look
    fi;

arm:
    launched = 0;
    COMMIT(assert(row[c] == UNARMED || mine != epoch); row[c] = ARMED);
    /* between the commit and the hand-over anything may happen, also that another leads by now */
    if
    :: atomic { host[c] = 1; launched = 1; run Host(c, mine) }
    :: DIE goto deposed
    fi;
    goto turn;

look:
    /* from outside in: its host first, its journal after it, and only then every process */
    first = journal[c];
    host_there = host[c];
    said = journal[c];
#ifndef TRUSTING
    if
    :: first == EMPTY && said != EMPTY -> goto turn     /* whose host that is has not been looked at */
    :: else
    fi;
#endif
    if
    :: DIE goto deposed
    :: said == EMPTY && launched && host_there -> goto turn
#ifdef HASTY
    :: (said == EMPTY || said == CLAIMED || said == BEGUN) && !(launched && host_there) ->
           COMMIT(row[c] = FAILED; over[c] = 1);
           goto turn
    :: (said == CLAIMED || said == BEGUN) && launched && host_there -> goto turn
#else
    :: said == EMPTY && !(launched && host_there) ->
           d_step {
               if
               :: journal[c] == EMPTY -> journal[c] = REVOKED
               :: else
               fi
           }
           goto turn
#endif
    :: said == REVOKED ->
           COMMIT(row[c] = FAILED; assert(effects[c] == 0); over[c] = 1);
           goto turn
#ifndef HASTY
    :: said == CLAIMED && !host_there ->
           if
           :: agent[c] -> goto turn
           :: !agent[c] -> COMMIT(row[c] = FAILED; assert(effects[c] == 0); over[c] = 1); goto turn
           fi
    :: said == CLAIMED && host_there -> goto turn
    :: said == BEGUN && host_there -> goto turn
    :: said == BEGUN && !host_there ->          /* it may run: only when nothing of it is left is it over */
           if
           :: agent[c] -> goto turn
           :: !agent[c] -> COMMIT(assert(!agent[c] && !host[c]); over[c] = 1); goto turn
           fi
#endif
    :: said == ACCEPTED && row[c] != ACKNOWLEDGED ->
           COMMIT(row[c] = ACKNOWLEDGED; assert(effects[c] == 1));
           goto turn
    :: said == ACCEPTED && row[c] == ACKNOWLEDGED && host_there -> goto turn
    :: said == ACCEPTED && row[c] == ACKNOWLEDGED && !host_there ->
           if
           :: agent[c] -> goto turn
           :: !agent[c] -> COMMIT(assert(!agent[c] && !host[c]); over[c] = 1); goto turn
           fi
    :: said == ENDED ->
           COMMIT(row[c] = ACKNOWLEDGED; assert(effects[c] == 1 && !agent[c]); over[c] = 1);
           goto turn
    fi;

finished:
    skip
}

init {
    atomic {
        byte i;
        for (i : 0 .. COMMANDS - 1) { row[i] = UNARMED; journal[i] = EMPTY }
        run Supervisor(1);
        run Supervisor(2)
    }
}
