/* SQLite and fork(). Internal. */
#ifndef STATS_SCHEMA_DATABASE_FORK_H
#define STATS_SCHEMA_DATABASE_FORK_H

/*
 * From the first call on, SQLite's locks of the whole process are held during fork(). So a child gets them free, and
 * may use SQLite, but no file that its parent has open. Any thread; call it before a connection is opened.
 */
void weir__database_watch_forks(void);

#endif
