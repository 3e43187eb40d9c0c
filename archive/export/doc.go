// Package export writes an archive in formats that other programs read.
//
// [CDXJ] writes an index for pywb and similar tools. [WACZ] packs everything into one file that
// ReplayWeb.page and others show without a server. Neither changes the archive. Captures may be
// appended during the export.
package export
