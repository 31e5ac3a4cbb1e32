// Package picture brings images within what a model takes.
//
//	photo.jpg  8000x6000, 9 MB  ->  2000x1500, 0.6 MB, image/jpeg
//	shot.png    800x600, 40 KB  ->  as it is: its pixels are never decoded
//	scan.bmp                    ->  image/png
//	bomb.png  90000x90000       ->  an error: nothing is decoded
//
// The type is read from the bytes, whatever a file's name says. Only an image that
// is too large, or of a type that the model does not take, is decoded, after its
// header has said that its pixels fit into [MaxDecoded]. What it becomes depends on
// its bytes and the limits alone, so that a prompt stays the same from request to
// request.
//
// # Ownership
//
// The package holds no data. One image is decoded at a time in a process, so that
// several large ones never meet in memory; who waits leaves with its context.
//
// # Errors
//
// An error is a part of a sentence about the image, for its user and the model:
// "it has 90000x90000 pixels, more than can be made smaller here".
package picture
