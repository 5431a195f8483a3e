/* Commands by their names: which of them wait by design, have subcommands, or end the calls of a connection. */
#ifndef SLOWPATH_COMMANDS_H
#define SLOWPATH_COMMANDS_H

/* WORD is eight characters of a command as one number, in upper case; unused ones are 0. */
#define WORD(a, b, c, d, e, f, g, h)                                            \
	((u64)(a) | (u64)(b) << 8 | (u64)(c) << 16 | (u64)(d) << 24 |           \
	 (u64)(e) << 32 | (u64)(f) << 40 | (u64)(g) << 48 | (u64)(h) << 56)

#define SETINFO WORD('S', 'E', 'T', 'I', 'N', 'F', 'O', 0)
#define SETNAME WORD('S', 'E', 'T', 'N', 'A', 'M', 'E', 0)
#define BLOCK WORD('B', 'L', 'O', 'C', 'K', 0, 0, 0)
#define XREAD WORD('X', 'R', 'E', 'A', 'D', 0, 0, 0)
#define XREADGROUP WORD('X', 'R', 'E', 'A', 'D', 'G', 'R', 'O')
#define CLIENT_COMMAND WORD('C', 'L', 'I', 'E', 'N', 'T', 0, 0)

/* upper makes the letters of eight bytes upper case. */
static __always_inline u64 upper(u64 x)
{
	u64 ones = 0x0101010101010101ull;
	u64 seven = x & 0x7f * ones;
	u64 ge_a = seven + (0x80 - 'a') * ones;
	u64 gt_z = seven + (0x7f - 'z') * ones;
	u64 lower = (ge_a ^ gt_z) & ~x & 0x80 * ones;
	return x - (lower >> 2);
}

/* may_block: commands that wait by design, XREAD and XREADGROUP with the option BLOCK. A test compares the list with
 * recording.BlockingCommands. */
static __always_inline bool may_block(u64 name)
{
	switch (name) {
	case WORD('B', 'L', 'P', 'O', 'P', 0, 0, 0):
	case WORD('B', 'R', 'P', 'O', 'P', 0, 0, 0):
	case WORD('B', 'L', 'M', 'O', 'V', 'E', 0, 0):
	case WORD('B', 'L', 'M', 'P', 'O', 'P', 0, 0):
	case WORD('B', 'R', 'P', 'O', 'P', 'L', 'P', 'U'):
	case WORD('B', 'Z', 'M', 'P', 'O', 'P', 0, 0):
	case WORD('B', 'Z', 'P', 'O', 'P', 'M', 'A', 'X'):
	case WORD('B', 'Z', 'P', 'O', 'P', 'M', 'I', 'N'):
	case WORD('W', 'A', 'I', 'T', 0, 0, 0, 0):
	case WORD('W', 'A', 'I', 'T', 'A', 'O', 'F', 0):
	case XREAD:
	case XREADGROUP:
		return true;
	}
	return false;
}

/* blocks_by_design reports whether a request waits by design: option is BLOCK, if it has that. In MULTI or a script it
 * does not wait; then its reply comes at once, and only its time is not counted. */
static __always_inline bool blocks_by_design(u64 name, u64 option)
{
	return may_block(name) && ((name != XREAD && name != XREADGROUP) || option == BLOCK);
}

/* administers: commands that change the server, its cluster or its other clients, and not only data. A test compares
 * the list with recording.Administers. */
static __always_inline bool administers(u64 name, u64 sub)
{
	switch (name) {
	case WORD('C', 'O', 'N', 'F', 'I', 'G', 0, 0):
		return sub == WORD('S', 'E', 'T', 0, 0, 0, 0, 0) || sub == WORD('R', 'E', 'S', 'E', 'T', 'S', 'T', 'A') ||
		       sub == WORD('R', 'E', 'W', 'R', 'I', 'T', 'E', 0);
	case CLIENT_COMMAND:
		return sub == WORD('P', 'A', 'U', 'S', 'E', 0, 0, 0) || sub == WORD('U', 'N', 'P', 'A', 'U', 'S', 'E', 0) ||
		       sub == WORD('K', 'I', 'L', 'L', 0, 0, 0, 0);
	case WORD('C', 'L', 'U', 'S', 'T', 'E', 'R', 0):
		return sub == WORD('F', 'A', 'I', 'L', 'O', 'V', 'E', 'R') ||
		       sub == WORD('S', 'E', 'T', 'S', 'L', 'O', 'T', 0) || sub == WORD('M', 'E', 'E', 'T', 0, 0, 0, 0) ||
		       sub == WORD('F', 'O', 'R', 'G', 'E', 'T', 0, 0) || sub == WORD('R', 'E', 'S', 'E', 'T', 0, 0, 0) ||
		       sub == WORD('R', 'E', 'P', 'L', 'I', 'C', 'A', 'T') ||
		       sub == WORD('A', 'D', 'D', 'S', 'L', 'O', 'T', 'S') ||
		       sub == WORD('D', 'E', 'L', 'S', 'L', 'O', 'T', 'S');
	case WORD('A', 'C', 'L', 0, 0, 0, 0, 0):
		return sub == WORD('S', 'E', 'T', 'U', 'S', 'E', 'R', 0) || sub == WORD('D', 'E', 'L', 'U', 'S', 'E', 'R', 0) ||
		       sub == WORD('L', 'O', 'A', 'D', 0, 0, 0, 0);
	case WORD('S', 'C', 'R', 'I', 'P', 'T', 0, 0):
		return sub == WORD('F', 'L', 'U', 'S', 'H', 0, 0, 0) || sub == WORD('K', 'I', 'L', 'L', 0, 0, 0, 0);
	case WORD('M', 'E', 'M', 'O', 'R', 'Y', 0, 0):
		return sub == WORD('P', 'U', 'R', 'G', 'E', 0, 0, 0);
	case WORD('D', 'E', 'B', 'U', 'G', 0, 0, 0):
	case WORD('R', 'E', 'P', 'L', 'I', 'C', 'A', 'O'):
	case WORD('S', 'L', 'A', 'V', 'E', 'O', 'F', 0):
	case WORD('F', 'A', 'I', 'L', 'O', 'V', 'E', 'R'):
	case WORD('F', 'L', 'U', 'S', 'H', 'A', 'L', 'L'):
	case WORD('F', 'L', 'U', 'S', 'H', 'D', 'B', 0):
	case WORD('S', 'W', 'A', 'P', 'D', 'B', 0, 0):
	case WORD('S', 'A', 'V', 'E', 0, 0, 0, 0):
	case WORD('B', 'G', 'S', 'A', 'V', 'E', 0, 0):
	case WORD('B', 'G', 'R', 'E', 'W', 'R', 'I', 'T'):
		return true;
	}
	return false;
}

/* transacts: commands with which a transaction watches keys, and ends. */
static __always_inline enum transacts transacts(u64 name)
{
	switch (name) {
	case WORD('W', 'A', 'T', 'C', 'H', 0, 0, 0):
		return WATCHES;
	case WORD('U', 'N', 'W', 'A', 'T', 'C', 'H', 0):
	case WORD('D', 'I', 'S', 'C', 'A', 'R', 'D', 0):
		return ENDS_WATCH;
	case WORD('E', 'X', 'E', 'C', 0, 0, 0, 0):
		return EXECUTES;
	}
	return NO_TRANSACTION;
}

/* walks: commands with a cursor. What asks for the next part has waited for the one before. */
static __always_inline bool walks(u64 name)
{
	return name == WORD('S', 'C', 'A', 'N', 0, 0, 0, 0) || name == WORD('H', 'S', 'C', 'A', 'N', 0, 0, 0) ||
	       name == WORD('S', 'S', 'C', 'A', 'N', 0, 0, 0) || name == WORD('Z', 'S', 'C', 'A', 'N', 0, 0, 0);
}

/* has_no_calls: commands after which a connection carries messages that are no replies. */
static __always_inline bool has_no_calls(u64 name)
{
	switch (name) {
	case WORD('S', 'U', 'B', 'S', 'C', 'R', 'I', 'B'):
	case WORD('P', 'S', 'U', 'B', 'S', 'C', 'R', 'I'):
	case WORD('S', 'S', 'U', 'B', 'S', 'C', 'R', 'I'):
	case WORD('U', 'N', 'S', 'U', 'B', 'S', 'C', 'R'): /* of one that was there before, */
	case WORD('P', 'U', 'N', 'S', 'U', 'B', 'S', 'C'):
	case WORD('S', 'U', 'N', 'S', 'U', 'B', 'S', 'C'):
	case WORD('M', 'O', 'N', 'I', 'T', 'O', 'R', 0):
	case WORD('S', 'Y', 'N', 'C', 0, 0, 0, 0):
	case WORD('P', 'S', 'Y', 'N', 'C', 0, 0, 0):
	case WORD('R', 'E', 'P', 'L', 'C', 'O', 'N', 'F'):
		return true;
	}
	return false;
}

static __always_inline bool has_subcommands(u64 name)
{
	return name == WORD('C', 'L', 'I', 'E', 'N', 'T', 0, 0) || name == WORD('C', 'L', 'U', 'S', 'T', 'E', 'R', 0) ||
	       name == WORD('C', 'O', 'N', 'F', 'I', 'G', 0, 0) || name == WORD('C', 'O', 'M', 'M', 'A', 'N', 'D', 0) ||
	       name == WORD('D', 'E', 'B', 'U', 'G', 0, 0, 0) || name == WORD('M', 'E', 'M', 'O', 'R', 'Y', 0, 0) ||
	       name == WORD('S', 'C', 'R', 'I', 'P', 'T', 0, 0) || name == WORD('L', 'A', 'T', 'E', 'N', 'C', 'Y', 0) ||
	       name == WORD('S', 'L', 'O', 'W', 'L', 'O', 'G', 0) || name == WORD('A', 'C', 'L', 0, 0, 0, 0, 0) ||
	       name == WORD('X', 'I', 'N', 'F', 'O', 0, 0, 0) || name == WORD('O', 'B', 'J', 'E', 'C', 'T', 0, 0);
}

/* is_observer_name: by such a name a connection of slowpath announces itself (CLIENT SETNAME). slowpath bench is a load
 * like any other. */
static __always_inline bool is_observer_name(u64 first, u64 second)
{
	return first == WORD('S', 'L', 'O', 'W', 'P', 'A', 'T', 'H') &&
	       (!second || second == WORD('-', 'W', 'A', 'T', 'C', 'H', 0, 0) ||
		second == WORD('-', 'T', 'O', 'P', 'O', 'L', 'O', 'G'));
}

/* wanted_after_name is what the bulk string after the name of a command is. */
static __always_inline u8 wanted_after_name(u64 name)
{
	if (name == XREAD || name == XREADGROUP)
		return WANT_OPTION;
	return has_subcommands(name) ? WANT_SUBCOMMAND : WANT_NOTHING;
}

/* wanted_after_option follows the options of XREAD and XREADGROUP: GROUP has two values, COUNT and BLOCK one. */
static __always_inline u8 wanted_after_option(u64 option)
{
	if (option == WORD('G', 'R', 'O', 'U', 'P', 0, 0, 0))
		return WANT_OPTION_AFTER_TWO;
	if (option == WORD('C', 'O', 'U', 'N', 'T', 0, 0, 0))
		return WANT_OPTION_AFTER_ONE;
	if (option == BLOCK || option == WORD('S', 'T', 'R', 'E', 'A', 'M', 'S', 0))
		return WANT_NOTHING;
	return WANT_OPTION;
}

#endif
