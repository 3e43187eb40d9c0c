// Package export writes an archive in the forms that other programs read.
//
// [CDXJ] writes an index for pywb and its kin. [WACZ] packs everything into one file that
// ReplayWeb.page and others show without a server. Neither changes the archive, which may be
// appended to meanwhile.
package export
