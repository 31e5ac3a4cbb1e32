//go:build !unix

package filelog

// helperJob is never set here: the tests with several processes need Unix.
const helperJob = "FILELOG_TEST_HELPER"

func helper(string) {}
